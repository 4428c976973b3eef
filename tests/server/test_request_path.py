"""A request's way through the package stays short (`tools/request_path.py`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MOST_FILES = 28
"""Files that run from one piece of a streamed answer to the next."""
MOST_FILES_OF_A_REQUEST = 70
"""Files that run at all: limits, keys, fields, the template and the tokenizer have each their own."""


@pytest.fixture(scope="module")
def path() -> dict:
    result = subprocess.run(
        [sys.executable, "-m", "tools.request_path", "--json"], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_piece_of_an_answer_crosses_few_files(path):
    assert 20 < len(path["pieces"]) <= MOST_FILES, path["pieces"]


def test_a_request_crosses_no_more_files_than_it_did(path):
    assert len(path["request"]) <= MOST_FILES_OF_A_REQUEST, path["request"]


def test_four_generators_stand_between_the_model_and_the_client(path):
    assert path["generators"] == ["Generation.pieces", "together", "answers", "_events"]


def test_the_template_renders_once(path):
    assert path["renderings"] == 1


def test_an_answer_is_parsed_once(path):
    assert path["functions"]["api/reading.py"]["Reading._new_parser"] == 1
    assert path["functions"]["chat/parser.py"]["OutputParser.__init__"] == 1
