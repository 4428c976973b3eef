"""Forty plain requests with one to five tools, and the call that each is to end in.

    AKUNU_REAL_MODELS=FOLDER PYTHONPATH=python:tests python -m real.plain_calls [MODEL...]

counts, for each model in the folder, the answers that are the right call, with calls read only in the
model's own form and with calls in other dress (`lenient_tool_calls`), and shows those that are not.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import akunu

__all__ = ["REQUESTS", "TOOLS", "Request", "answered", "is_right"]


def _tool(name: str, description: str, required: Mapping[str, Any], **optional: Any) -> dict[str, Any]:
    properties = {
        key: {"type": value} if isinstance(value, str) else value
        for key, value in {**required, **optional}.items()
    }
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


_UNITS: Final = {"enum": ["celsius", "fahrenheit"]}

TOOLS: Final = {
    tool["function"]["name"]: tool
    for tool in (
        _tool("get_weather", "Get the current weather in a city.", {"city": "string"}, unit=_UNITS),
        _tool("get_time", "Get the current time in a city.", {"city": "string"}),
        _tool("read_file", "Read a file.", {"path": "string"}),
        _tool("write_file", "Write a text to a file.", {"path": "string", "content": "string"}),
        _tool("list_files", "List the files in a folder.", {"path": "string"}),
        _tool("delete_file", "Delete a file.", {"path": "string"}),
        _tool("run_command", "Run a shell command.", {"command": "string"}),
        _tool("web_search", "Search the web.", {"query": "string"}, limit="integer"),
        _tool(
            "send_email",
            "Send an e-mail.",
            {"to": "string", "subject": "string", "body": "string"},
        ),
        _tool(
            "convert_currency",
            "Convert an amount of money.",
            {"amount": "number", "from": "string", "to": "string"},
        ),
        _tool("translate", "Translate a text.", {"text": "string", "language": "string"}),
        _tool("set_timer", "Start a timer.", {"minutes": "integer"}),
        _tool("calculate", "Evaluate an arithmetic expression.", {"expression": "string"}),
        _tool("get_stock_price", "Get the price of a stock by its ticker symbol.", {"symbol": "string"}),
        _tool("play_music", "Play a song.", {"title": "string"}, artist="string"),
    )
}


@dataclass(frozen=True)
class Request:
    """What is asked, the tools that are offered, and the call that is right.

    Each of `arguments` has to be there; a text is right if it contains the one that is given here, in lower
    case.
    """

    text: str
    tools: tuple[str, ...]
    name: str
    arguments: Mapping[str, Any]


def _ask(text: str, tools: str, name: str, /, **arguments: Any) -> Request:
    return Request(text, tuple(tools.split()), name, {k.rstrip("_"): v for k, v in arguments.items()})


REQUESTS: Final = (
    _ask("What is the weather in Paris?", "get_weather", "get_weather", city="paris"),
    _ask("What's the weather like in Tokyo in celsius?", "get_weather", "get_weather", city="tokyo"),
    _ask("Is it raining in Berlin right now?", "get_weather get_time", "get_weather", city="berlin"),
    _ask("What time is it in New York?", "get_weather get_time", "get_time", city="new york"),
    _ask("What time is it in Sydney?", "get_time", "get_time", city="sydney"),
    _ask("Read the file README.md.", "read_file", "read_file", path="readme.md"),
    _ask("Show me what is in src/main.c.", "read_file write_file list_files", "read_file", path="src/main.c"),
    _ask("Open the file config.yaml and read it.", "list_files read_file", "read_file", path="config.yaml"),
    _ask(
        "Create a file hello.txt with the text Hello, world!",
        "write_file",
        "write_file",
        path="hello.txt",
        content="hello",
    ),
    _ask(
        "Write 'buy milk' into notes/todo.txt.",
        "read_file write_file",
        "write_file",
        path="notes/todo.txt",
        content="buy milk",
    ),
    _ask(
        "Create a Python file hello.py that prints Hello.",
        "read_file write_file list_files run_command",
        "write_file",
        path="hello.py",
        content="print",
    ),
    _ask("List the files in the folder src.", "list_files", "list_files", path="src"),
    _ask("Which files are in /etc?", "read_file list_files", "list_files", path="/etc"),
    _ask("Delete the file old.log.", "delete_file", "delete_file", path="old.log"),
    _ask(
        "Please remove tmp/cache.bin.",
        "read_file write_file list_files delete_file",
        "delete_file",
        path="tmp/cache.bin",
    ),
    _ask("Run the command 'ls -la'.", "run_command", "run_command", command="ls -la"),
    _ask("Run the tests with pytest.", "run_command read_file", "run_command", command="pytest"),
    _ask("Show the git status with a shell command.", "run_command", "run_command", command="git status"),
    _ask("Search the web for the tallest building.", "web_search", "web_search", query="tallest building"),
    _ask(
        "Search the web for reviews of the Pixel 9.",
        "get_weather web_search",
        "web_search",
        query="pixel 9",
    ),
    _ask("Find 3 web pages about black holes.", "web_search calculate", "web_search", query="black hole"),
    _ask(
        "Send an e-mail to bob@example.org with the subject Lunch and the body See you at noon.",
        "send_email",
        "send_email",
        to="bob@example.org",
        subject="lunch",
        body="noon",
    ),
    _ask(
        "Mail alice@example.com, subject: Report, text: The report is ready.",
        "web_search send_email get_time",
        "send_email",
        to="alice@example.com",
        subject="report",
        body="ready",
    ),
    _ask(
        "Convert 100 USD to EUR.", "convert_currency", "convert_currency", amount=100, from_="usd", to="eur"
    ),
    _ask(
        "How much is 250 GBP in JPY?",
        "calculate convert_currency",
        "convert_currency",
        amount=250,
        from_="gbp",
        to="jpy",
    ),
    _ask("Translate 'good morning' into French.", "translate", "translate", text="good morning"),
    _ask(
        "Translate 'thank you' into Japanese.",
        "translate web_search get_time",
        "translate",
        text="thank you",
        language="ja",
    ),
    _ask("Set a timer for 10 minutes.", "set_timer", "set_timer", minutes=10),
    _ask("Start a timer of 25 minutes.", "set_timer get_time play_music", "set_timer", minutes=25),
    _ask("Calculate 12 * 34.", "calculate", "calculate", expression="12"),
    _ask("What is 1234 + 5678? Use the tool.", "calculate web_search", "calculate", expression="1234"),
    _ask("What is the stock price of AAPL?", "get_stock_price", "get_stock_price", symbol="aapl"),
    _ask(
        "Get the current price of the stock MSFT.",
        "get_weather get_stock_price convert_currency",
        "get_stock_price",
        symbol="msft",
    ),
    _ask("Play Yesterday by the Beatles.", "play_music", "play_music", title="yesterday"),
    _ask(
        "Play the song Imagine by John Lennon.",
        "set_timer play_music get_time",
        "play_music",
        title="imagine",
    ),
    _ask(
        "What is the weather in Rome?",
        "get_time get_weather web_search set_timer translate",
        "get_weather",
        city="rome",
    ),
    _ask(
        "Read the file data/input.csv.",
        "get_weather read_file write_file delete_file run_command",
        "read_file",
        path="data/input.csv",
    ),
    _ask(
        "Set a timer for 5 minutes.",
        "get_weather get_time set_timer calculate translate",
        "set_timer",
        minutes=5,
    ),
    _ask(
        "Convert 50 EUR to CHF.",
        "get_stock_price calculate convert_currency web_search translate",
        "convert_currency",
        amount=50,
        from_="eur",
        to="chf",
    ),
    _ask("Get the weather in Madrid in fahrenheit.", "get_weather", "get_weather", city="madrid"),
)


def answered(model: akunu.Model, request: Request, **options: Any) -> akunu.Completion:
    """What the model answers, without chance."""
    return model.chat(
        [{"role": "user", "content": request.text}],
        tools=[TOOLS[name] for name in request.tools],
        temperature=0,
        max_tokens=160,
        **options,
    )


def is_right(request: Request, completion: akunu.Completion) -> bool:
    """Whether the answer is the call that is wanted, first of all."""
    calls = (completion.message or {}).get("tool_calls") or []
    if not calls or calls[0]["function"]["name"] != request.name:
        return False
    arguments = json.loads(calls[0]["function"]["arguments"])
    return all(_same(arguments.get(name), wanted) for name, wanted in request.arguments.items())


def _same(found: Any, wanted: Any) -> bool:
    return wanted in found.lower() if isinstance(found, str) and isinstance(wanted, str) else found == wanted


def main() -> None:
    from real.models import real_model

    parser = argparse.ArgumentParser(description="Counts right calls.")
    parser.add_argument("models", nargs="*", default=["qwen2.5-coder-1.5b", "qwen2.5-coder-0.5b"])
    for name in parser.parse_args().models:
        with akunu.load(real_model(name), context=4096, progress=False) as model:
            for lenient in (False, True):
                right = 0
                for request in REQUESTS:
                    completion = answered(model, request, lenient_tool_calls=lenient)
                    good = is_right(request, completion)
                    right += good
                    if not good:
                        print(f"  {request.text!r} {request.tools}: {completion.text!r}", flush=True)
                print(f"{name}, lenient={lenient}: {right} of {len(REQUESTS)}", flush=True)


if __name__ == "__main__":
    main()
