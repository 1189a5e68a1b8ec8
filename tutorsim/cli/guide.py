"""`tutorsim guide`: the pages that go with the README."""

import click

from tutorsim.cli.console import out
from tutorsim.guide import TOPICS, page


@click.command()
@click.argument("topic", required=False)
def guide(topic: str | None) -> None:
    """Print the page of the guide about TOPIC, or say which topics there are.

    The blocks of a page run from top to bottom in an empty folder after `tutorsim demo --log-dir
    runs/demo`. On a terminal a page is laid out; elsewhere it is printed as it is, in Markdown.
    """
    console = out()
    if topic is None:
        width = max(map(len, TOPICS))
        for name, about in TOPICS.items():
            console.print(f"{name:<{width}}  {about}", soft_wrap=True)
        return
    text = page(topic)
    if not console.is_terminal:
        click.echo(text, nl=False)
        return
    from rich.markdown import Markdown

    console.print(Markdown(text))
