"""A scripted model behind the Messages API, for recordings without a network and for faults.

It answers as students, judges and tutors of this package's prompts, from the prompt alone, and
knows nothing of the world: its figures say nothing about any language model.
"""

from tutorsim.standin.http_responses_and_faults import FAULT_KINDS, Fault, parse_fault
from tutorsim.standin.messages_api_routes_and_replies import STANDIN_VERSION, Endpoint
from tutorsim.standin.server import StandIn, serve

__all__ = ["FAULT_KINDS", "STANDIN_VERSION", "Endpoint", "Fault", "StandIn", "parse_fault", "serve"]
