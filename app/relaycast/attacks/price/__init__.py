"""What an attack costs those who make it, beside what it harms: ``relaycast attack price``."""

from relaycast.attacks.price.bills import AttackPrice, Bill, Harm
from relaycast.attacks.price.table import MEASURED, PriceReport, price

__all__ = ["MEASURED", "AttackPrice", "Bill", "Harm", "PriceReport", "price"]
