"""The pictures of docs/page.md: `python -m scripts.page_pictures MODEL`, with Chromium.

MODEL: a folder of German credit under its policy, such as demo/model of `make serve`. Everything
random is fixed, so the same model gives the same pictures.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from genrecourse.advice.service import Service
from genrecourse.apps.serve.application import create_app
from genrecourse.apps.serve.run import server_config
from genrecourse.apps.serve.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
POLICY = ROOT / "policies" / "german.toml"


@contextmanager
def serving(service: Service) -> Iterator[str]:
    """Serve the page on a free port of this machine, and give its address."""
    settings = Settings(port=0)
    server = uvicorn.Server(server_config(create_app(service, settings), settings))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.05)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
        server.should_exit = True
        thread.join()


def ask(page: Any, url: str) -> None:
    page.goto(f"{url}?example=0")
    page.click("#go")
    page.wait_for_selector(".reasons")
    page.evaluate("window.scrollTo(0, 0)")


def plans(page: Any) -> None:
    """Plans beside what suits a person."""


def phone(page: Any) -> None:
    """One plan on a phone."""
    page.evaluate("document.querySelector('.cards').scrollIntoView()")


def no_plan(page: Any) -> None:
    """No plan, and what a rule costs."""
    page.fill("#months", "2")
    page.select_option("#most", "1")
    page.wait_for_selector(".hypothetical")
    page.click(".hypothetical > summary >> nth=0")
    page.evaluate("document.querySelector('#plans-slot').scrollIntoView()")


PICTURES = (
    ("page_plans", plans, 1280, 1500, "light"),
    ("page_phone", phone, 390, 780, "dark"),
    ("page_no_plan", no_plan, 820, 760, "light"),
)


def main() -> None:
    from playwright.sync_api import sync_playwright

    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("model", type=Path)
    chromium = shutil.which("chromium")
    service = Service.open(asked.parse_args().model, policy=POLICY)
    with serving(service) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, prepare, width, height, scheme in PICTURES:
            page = browser.new_page(
                viewport={"width": width, "height": height},
                color_scheme=scheme,
                reduced_motion="reduce",
            )
            ask(page, url)
            prepare(page)
            page.wait_for_timeout(300)
            page.screenshot(path=IMAGES / f"{name}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
