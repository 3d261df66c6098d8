"""`memory`: list, get, search, render, history."""

from typing import Annotated

import typer

from memory_pipelines.cli.output import AsJson, console, model_name, opened, print_json, print_parts, print_records
from memory_pipelines.cli.report import print_entries

app = typer.Typer(help="What is remembered.", no_args_is_help=True)

Store = Annotated[str, typer.Argument(help="Id or full name of the memory store.")]
Actor = Annotated[str, typer.Option(help="Whose memory.")]
EntryPath = Annotated[str, typer.Argument(metavar="PATH", help="Of the entry, such as /preferences.md.")]


@app.command("list", epilog="Example: memory-pipelines memory list support-memory --actor u1")
def list_entries(
    store: Store,
    actor: Annotated[str | None, typer.Option(help="Only this actor.")] = None,
    path_prefix: Annotated[str | None, typer.Option(help="Only entries below this path.")] = None,
    as_json: AsJson = False,
) -> None:
    """List entries."""
    with opened() as context:
        print_records(
            context.memory.list(store, actor_id=actor, path_prefix=path_prefix),
            ["actor_id", "path", "description", "source_type", "version", "update_time"],
            as_json=as_json,
            empty="No entries.",
        )


@app.command(epilog="Example: memory-pipelines memory get support-memory /preferences.md --actor u1 --sources")
def get(
    store: Store,
    path: EntryPath,
    actor: Actor,
    sources: Annotated[bool, typer.Option("--sources", help="Where each line was said.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show an entry, and with --sources the sentence each line came from."""
    with opened() as context:
        entry = context.memory.get(store, actor_id=actor, path=path)
        facts = context.memory.sources(store, actor_id=actor, path=path) if sources else []
        if as_json:
            print_json({**entry.model_dump(), **({"sources": facts} if sources else {})})
            return
        print_entries([entry])
        for line, fact in facts:
            print_parts(f"\n  {line}")
            source = f"{fact.source.session_id}, item {fact.source.position}, {fact.observed_at:%Y-%m-%d}"
            print_parts(f"    said in {source}, found by {model_name(fact.model)}")
            print_parts(f"    “{fact.quote}”")


@app.command(epilog="Example: memory-pipelines memory search support-memory 'metric units' --actor u1")
def search(
    store: Store,
    query: Annotated[str, typer.Argument(help="Words, in any script.")],
    actor: Actor,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many entries.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Find entries by words, best first."""
    with opened() as context:
        hits = context.memory.search(store, actor_id=actor, query=query, limit=limit)
        if as_json:
            print_json(hits)
            return
        if not hits:
            console.print("Nothing found.")
        for hit in hits:
            console.print(f"[bold]{hit.score:.2f}[/]")
            print_entries([hit.entry])


@app.command(epilog="Example: memory-pipelines memory render support-memory --actor u1 --budget-tokens 800")
def render(
    store: Store,
    actor: Actor,
    budget_tokens: Annotated[int, typer.Option(min=50, help="Upper bound of the block, in tokens.")] = 800,
    query: Annotated[str | None, typer.Option(help="Put entries that match first.")] = None,
    as_json: AsJson = False,
) -> None:
    """Render an actor's memory as one block for a prompt."""
    with opened() as context:
        text = context.memory.render(store, actor_id=actor, budget_tokens=budget_tokens, query=query)
        if as_json:
            print_json({"text": text})
        else:
            typer.echo(text, nl=False)


@app.command(epilog="Example: memory-pipelines memory history support-memory /preferences.md --actor u1")
def history(store: Store, path: EntryPath, actor: Actor, as_json: AsJson = False) -> None:
    """Show every state of an entry, oldest first."""
    with opened() as context:
        print_records(
            context.memory.history(store, actor_id=actor, path=path),
            ["version", "time", "action", "author", "stage", "run", "reason", "content"],
            as_json=as_json,
            empty="No revisions.",
        )
