"""`tutorsim standin`: the scripted model as a server."""

import asyncio
import signal

import click

from tutorsim.cli import console
from tutorsim.standin import STANDIN_VERSION, Endpoint, parse_fault, serve

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.group()
def standin() -> None:
    """Serve a scripted model for recordings without the real one.

    It speaks the Messages API, batches included, and plays students, judges and tutors. What is
    recorded from it says nothing about any language model.
    """


@standin.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    default=0,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 takes a free one.  [default: 0]",
)
@click.option("--seed", default=0, show_default=True, help="Another seed is another model.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="SPEC",
    help="Something to go wrong, as KIND[:HOW_OFTEN][:SECONDS][:persist]; may be given again.",
)
@click.option(
    "--steady",
    is_flag=True,
    help="Voters prefer the same under every ballot format, and write every ballot well.",
)
def serve_command(host: str, port: int, seed: int, faults: tuple[str, ...], steady: bool) -> None:
    """Serve until interrupted. The URL is the only line on stdout.

    \b
    Faults, for example --fault 429:0.1:2 --fault drop:20:
      429        rate limit error, with retry-after SECONDS
      529, 500   overloaded, internal error
      slow       a reply that waits SECONDS
      drop, cut  the connection closes before the answer, or in its middle
      garbage    a body that is not JSON
      refusal    a message without text
      truncated  half a reply, as if max_tokens had been reached
      expired    an entry of a batch that was not reached in time
      errored    an entry of a batch that met an internal error
      pending    a batch that takes SECONDS to end
    HOW_OFTEN is a share (0.05, the default) or every so many requests (20).
    A request that is sent again is answered, unless `persist` is added.
    """
    endpoint = Endpoint(seed=seed, faults=[parse_fault(spec) for spec in faults], steady=steady)
    err = console.err()
    if host not in _LOOPBACK:
        err.print(f"Listening on {host}: anyone who reaches this machine can use it.")
    err.print(f"Stand-in version {STANDIN_VERSION}, seed {seed}. Ctrl-C ends it.")
    asyncio.run(_until_signal(endpoint, host, port))
    err.print(f"Answered {endpoint.requests:,} requests.")


async def _until_signal(endpoint: Endpoint, host: str, port: int) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await serve(endpoint, host=host, port=port, ready=lambda url: click.echo(url), stop=stop)
