"""CloudEvents subscriptions: filters, encodings and the manager."""

from relaycast_gateway.cloudevents.event import attributes_of
from relaycast_gateway.cloudevents.filters import compile_filter
from relaycast_gateway.cloudevents.sql.errors import SqlEvaluationError, SqlParseError
from relaycast_gateway.cloudevents.sql.evaluation import evaluate_sql

__all__ = ["SqlEvaluationError", "SqlParseError", "attributes_of", "compile_filter", "evaluate_sql"]
