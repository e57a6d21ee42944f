"""From the body of a request to a `PlanRequest` within the limits of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from genrecourse.advice.request import PlanRequest
from genrecourse.apps.serve.errors import Refusal, as_seen, refusal_of
from genrecourse.apps.serve.messages import asked_fields, explain_body, plans_body
from genrecourse.errors import UserError, shown
from genrecourse.planning.wording import FOLDER

if TYPE_CHECKING:
    from pydantic import BaseModel

    from genrecourse.apps.serve.settings import Settings

LANGUAGES = tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


class Asking:
    """What a request for plans may ask: the fields of `PlanRequest`, within the limits."""

    def __init__(self, settings: Settings):
        self.settings = settings
        asked = asked_fields(PlanRequest)
        self.names, self.languages = tuple(asked), LANGUAGES
        self.nothing = PlanRequest()  # for verbs that take no options
        self.plans_body, self.explain_body = plans_body(asked), explain_body(asked)

    def request(self, body: BaseModel, people: int) -> PlanRequest:
        """Return what a body asks for about so many people.

        Raises Refusal beyond a limit. The language must be one that is shipped: a request names no
        file of this machine.
        """
        asked = {name: getattr(body, name) for name in self.names if name in body.model_fields_set}
        language = asked.get("language", LANGUAGES[0])
        if language not in LANGUAGES:
            raise Refusal(
                422,
                f"language is {shown(language)}",
                field="language",
                seen=as_seen(language),
                do=f"give one of {list(LANGUAGES)}",
            )
        _check_values(asked, self.settings.asked_values)
        _check_sizes(asked, people, self.settings)
        try:
            return PlanRequest.read(asked)
        except UserError as error:
            raise refusal_of(error, self.names) from None


def _check_values(asked: dict[str, Any], most: int) -> None:
    """Raise Refusal if rules or options hold so many values that reading them would take long."""
    for field in ("rules", "options"):
        left, found = [asked.get(field)], 0
        while left and found <= most:
            each = left.pop()
            inside = [*each.values()] if isinstance(each, dict) else each
            if isinstance(inside, list):
                left += inside
                found += len(inside)
        if found > most:
            raise Refusal(422, f"{field} has more than {most:,} values", field=field,
                          do="state fewer, or divide the request")  # fmt: skip


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
