"""The cost of each attack to the attacker, beside its harm: ``relaycast attack price``."""

from relaycast.attacks.price.bills import AttackPrice, Bill, Harm
from relaycast.attacks.price.ground import Terms
from relaycast.attacks.price.table import MEASURED, PriceReport, price

__all__ = ["MEASURED", "AttackPrice", "Bill", "Harm", "PriceReport", "Terms", "price"]
