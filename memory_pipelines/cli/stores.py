"""`session-store` and `memory-store`: create, list, get, delete."""

from typing import Annotated

import typer

from memory_pipelines.cli.output import (
    AsJson,
    Yes,
    confirm,
    console,
    counted,
    opened,
    print_deleted,
    print_json,
    print_record,
    print_records,
)
from memory_pipelines.cli.program import command

session_stores = typer.Typer(help="Places for conversations.", no_args_is_help=True)
memory_stores = typer.Typer(help="Places for memory entries.", no_args_is_help=True)

StoreId = Annotated[str, typer.Argument(help="Id or full name of the store.")]
Description = Annotated[str, typer.Option(help="For people.")]


@session_stores.command("create", epilog="Example: memory-pipelines session-store create support")
def create_session_store(store: StoreId, description: Description = "", as_json: AsJson = False) -> None:
    """Create a session store."""
    with opened() as app:
        made = app.sessions.create_store(store, description=description)
        print_record(made, as_json=as_json, said=f"Created session-stores/{made.id}.")


@session_stores.command("list", epilog="Example: memory-pipelines session-store list --json")
def list_session_stores(as_json: AsJson = False) -> None:
    """List the session stores."""
    with opened() as app:
        print_records(
            app.sessions.list_stores(),
            ["id", "description", "create_time"],
            as_json=as_json,
            empty="No session stores. Create one: " + command("session-store create ID"),
        )


@session_stores.command("get", epilog="Example: memory-pipelines session-store get support")
def get_session_store(store: StoreId, as_json: AsJson = False) -> None:
    """Show a session store with the numbers of its actors, sessions and items."""
    with opened() as app:
        found, counts = app.sessions.get_store(store), app.sessions.counts(store)
        if as_json:
            print_json({**found.model_dump(), "counts": counts})
            return
        numbers = ", ".join(counted(number, noun.removesuffix("s")) for noun, number in counts.items())
        console.print(f"session-stores/{found.id}: {numbers}. {found.description}", markup=False)


@session_stores.command("delete", epilog="Example: memory-pipelines session-store delete support --yes")
def delete_session_store(store: StoreId, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a session store with its conversations; memory stays."""
    with opened() as app:
        found, counts = app.sessions.get_store(store), app.sessions.counts(store)
        name = f"session-stores/{found.id}"
        confirm(f"Delete {name} with {counted(counts['sessions'], 'session')}?", yes=yes)
        app.sessions.delete_store(store)
        print_deleted(name, as_json=as_json)


@memory_stores.command("create", epilog="Example: memory-pipelines memory-store create support-memory")
def create_memory_store(store: StoreId, description: Description = "", as_json: AsJson = False) -> None:
    """Create a memory store."""
    with opened() as app:
        made = app.memory.create_store(store, description=description)
        print_record(made, as_json=as_json, said=f"Created memory-stores/{made.id}.")


@memory_stores.command("list", epilog="Example: memory-pipelines memory-store list --json")
def list_memory_stores(as_json: AsJson = False) -> None:
    """List the memory stores."""
    with opened() as app:
        print_records(
            app.memory.list_stores(),
            ["id", "description", "create_time"],
            as_json=as_json,
            empty="No memory stores. Create one: " + command("memory-store create ID"),
        )


@memory_stores.command("get", epilog="Example: memory-pipelines memory-store get support-memory")
def get_memory_store(store: StoreId, as_json: AsJson = False) -> None:
    """Show a memory store with the number of its actors."""
    with opened() as app:
        found, actors = app.memory.get_store(store), len(app.memory.actors(store))
        if as_json:
            print_json({**found.model_dump(), "actors": actors})
            return
        console.print(f"memory-stores/{found.id}: {counted(actors, 'actor')}. {found.description}", markup=False)


@memory_stores.command("delete", epilog="Example: memory-pipelines memory-store delete support-memory --yes")
def delete_memory_store(store: StoreId, yes: Yes = False, as_json: AsJson = False) -> None:
    """Delete a memory store with all entries."""
    with opened() as app:
        found, actors = app.memory.get_store(store), len(app.memory.actors(store))
        name = f"memory-stores/{found.id}"
        confirm(f"Delete {name} with the memory of {counted(actors, 'actor')}?", yes=yes)
        app.memory.delete_store(store)
        print_deleted(name, as_json=as_json)
