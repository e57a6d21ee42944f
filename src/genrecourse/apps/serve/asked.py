"""From the body of a request to a `PlanRequest` within the limits of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from genrecourse.advice.request import PlanRequest
from genrecourse.apps.serve.errors import Refusal, as_seen, refusal_of
from genrecourse.apps.serve.messages import ASKED
from genrecourse.errors import UserError
from genrecourse.planning.wording import FOLDER

if TYPE_CHECKING:
    from pydantic import BaseModel

    from genrecourse.apps.serve.settings import Settings

LANGUAGES = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def plan_request(body: BaseModel, people: int, settings: Settings) -> PlanRequest:
    """Return what a body with the fields of `PlanRequest` asks for.

    Raises Refusal beyond a limit. The language must be one that is shipped: a request names no file
    of this machine.
    """
    asked = {name: getattr(body, name) for name in ASKED if name in body.model_fields_set}
    language = asked.get("language", LANGUAGES[0])
    if language not in LANGUAGES:
        raise Refusal(422, f"language is {as_seen(language)!r}", field="language",
                      seen=as_seen(language), do=f"give one of {list(LANGUAGES)}")  # fmt: skip
    _check_sizes(asked, people, settings)
    try:
        return PlanRequest.read(asked)
    except UserError as error:
        raise refusal_of(error, ASKED) from None


def check_people(people: int, most: int, field: str = "people") -> None:
    """Raise Refusal if a request is about too many people."""
    if people > most:
        raise Refusal(422, f"{field} has {people:,} entries; at most {most:,} are answered",
                      field=field, seen=people, do="divide the request")  # fmt: skip


def _check_sizes(asked: dict[str, Any], people: int, settings: Settings) -> None:
    n, draws = asked.get("n", 1), (asked.get("options") or {}).get("n_draws", 1)
    for field, given, each, at_once in (
        ("n", n, settings.plans_each, settings.plans_at_once),
        ("options.n_draws", draws, settings.draws_each, settings.draws_at_once),
    ):
        if not isinstance(given, int | float):
            continue  # the method says what is wrong with it
        if given > each or given * people > at_once:
            raise Refusal(
                422,
                f"{field} is {as_seen(given)} for {people:,} people; at most {each:,} for each "
                f"and {at_once:,} together are computed",
                field=field,
                seen=as_seen(given),
                do=f"lower {field}, or ask about fewer people",
            )
