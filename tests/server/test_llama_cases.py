"""What llama.cpp's own server tests ask for, as data of ours: a file in `llama_cases` for each of theirs.

A case is a request and what its answer has to have: a path in the answer, and a value or a condition. Where
`differs` says why, the answer is ours instead of theirs. Words that their tiny models write are left out, and
requests name a model where ours have to.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from akunu.server import Settings, llama_completion
from akunu.server.auth import Holder, Keys, key_digest

from .conftest import EMBER, Served, serving, wait_until

FOLDER = Path(__file__).with_name("llama_cases")
KEY = "sk-this-is-the-secret-key"
CASES = {
    (file.stem.removeprefix("test_"), case["name"]): case
    for file in sorted(FOLDER.glob("test_*.json"))
    for case in json.loads(file.read_text(encoding="utf-8"))
}
NOT_OFFERED = json.loads((FOLDER / "not_offered.json").read_text(encoding="utf-8"))
MODELS = {"text": "ember", "fim": "ember", "keys": "ember", "vectors": "vectors", "scores": "scores"}
KINDS = {"text": str, "bool": bool, "number": (int, float), "list": list, "object": dict}
MISSING = object()


@pytest.fixture(scope="module")
def guarded() -> Iterator[Served]:
    with serving(EMBER, settings=Settings(keys=Keys([Holder("me", key_digest(KEY))]))) as found:
        yield found


def found_at(answer: Any, path: str) -> Any:
    for part in filter(None, path.split(".")):
        if isinstance(answer, list) and part.isdecimal() and int(part) < len(answer):
            answer = answer[int(part)]
        elif isinstance(answer, dict) and part in answer:
            answer = answer[part]
        else:
            return MISSING
    return answer


def holds(found: Any, wanted: Any, answer: Any) -> bool:
    """Whether a value is the one, or as the condition says."""
    if not isinstance(wanted, dict):
        return bool(found == wanted) and type(found) is type(wanted)
    size = len(found) if isinstance(found, list | str) else found
    checks = {
        "matches": lambda to: isinstance(found, str) and re.search(to.replace("[^]", r"[\s\S]"), found),
        "is": lambda to: isinstance(found, KINDS[to]),
        "length": lambda to: size == to,
        "least": lambda to: size >= to,
        "most": lambda to: size <= to,
        "norm": lambda to: math.isclose(math.hypot(*found), to, rel_tol=1e-3),
        "absent": lambda _: found is MISSING,
        "same_as": lambda to: found == found_at(answer, to),
    }
    return all(name == "absent" or found is not MISSING for name in wanted) and all(
        checks[name](to) for name, to in wanted.items()
    )


def check(answer: Any, path: str, wanted: Any) -> None:
    """`each`, `some`, `first` and `last` stand for the pieces of a stream."""
    which, _, rest = path.partition(".")
    if path == "events":
        seen = [each.get("type") for each in answer]
        assert [kind for kind in wanted if kind not in seen] == []
    elif which == "each" and wanted == {"same": True}:
        assert len({json.dumps(found_at(each, rest)) for each in answer}) == 1
    elif which == "each":
        assert all(holds(found_at(each, rest), wanted, each) for each in answer), (path, answer)
    elif which == "some":
        assert any(holds(found_at(each, rest), wanted, each) for each in answer), (path, answer)
    elif which in ("first", "last") and isinstance(answer, list):
        each = answer[0 if which == "first" else -1]
        assert holds(found_at(each, rest), wanted, each), (path, each)
    else:
        assert holds(found_at(answer, path), wanted, answer), (path, wanted, answer)


def ask(served: Served, case: dict[str, Any], **more: Any) -> tuple[int, Any]:
    """The status of the answer, and what is in it: a list of the pieces, where it is a stream."""
    body = None
    if "body" in case:
        body = {"model": MODELS[case["on"]], **case["body"], **more}
        if body.pop("nomodel", False):
            del body["model"]
    headers = {}
    if case.get("key"):
        key = case["key"].replace("KEY", KEY)
        headers = {"x-api-key": key} if "header" in case else {"authorization": f"Bearer {key}"}
    if "origin" in case:
        headers |= {"origin": case["origin"], "access-control-request-method": "POST"}
    got = served.http.request(case["method"], case["path"], json=body, headers=headers)
    if case.get("stream") and got.status_code == 200:
        data = [line[6:] for line in got.text.splitlines() if line.startswith("data: ")]
        return 200, [json.loads(each) for each in data if each != "[DONE]"]
    is_json = got.headers.get("content-type", "").startswith("application/json")
    return got.status_code, got.json() if is_json else {"text": got.text}


@pytest.mark.parametrize("case", CASES.values(), ids=[f"{file}: {name}" for file, name in CASES])
def test_a_case_of_llama_cpps_server(served, guarded, monkeypatch, case):
    on = guarded if case["on"] == "keys" else served
    if case["on"] == "fim":  # ember has no tokens for it
        monkeypatch.setattr(llama_completion, "infill_ids", lambda *_: [300, 301])
    if "beside" in case:
        threads = [threading.Thread(target=ask, args=(on, case)) for _ in range(case["beside"] - 1)]
        for thread in threads:
            thread.start()
    if "leaves" in case:
        impatient = httpx.Timeout(30, read=0.001)
        with pytest.raises(httpx.TimeoutException):
            httpx.post(on.url + case["path"], json=case["body"], timeout=impatient, trust_env=False)
        wait_until(lambda: not any(slot["is_processing"] for slot in on.http.get("/slots").json()))
    status, answer = ask(on, case)
    assert status == case["status"], answer
    for path, wanted in case.get("expect", {}).items():
        check(answer, path, wanted)
    if "beside" in case:
        for thread in threads:
            thread.join()
    if "again" in case:
        other = ask(on, case, **({} if case["again"] == "same" else {"seed": case["body"]["seed"] + 1}))[1]
        assert (other["content"] == answer["content"]) is (case["again"] == "same")
    if "back" in case:
        text = on.post("/detokenize", tokens=answer["tokens"]).json()["content"]
        assert text.strip() == case["back"]


def test_the_share_is_told():
    """`docs/server.md` says how many of them there are, and how many pass."""
    docs = (Path(__file__).parents[2] / "docs" / "server.md").read_text(encoding="utf-8")
    passed = sum("differs" not in case for case in CASES.values())
    left = sum(n for n, _ in NOT_OFFERED.values())
    assert f"{passed} of {len(CASES)} pass" in docs
    assert f"{left} more" in docs
    assert all(why for _, why in NOT_OFFERED.values())
