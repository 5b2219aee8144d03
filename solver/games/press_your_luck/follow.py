"""Follow a game of Press Your Luck as people tell it, line by line.

docs/how-to/agents.md lists the lines. A line with semicolons describes all players in turn order.
Every other line is a name, or its beginning, and the event that happened to that player.

A position keeps the exact dollars and every whammy; its state, for the board's tables, has them in
units of the board, up to its cap. Events follow the same rules with exact dollars and without a
cap, because the player to whom spins are passed must not depend on the unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import product

import numpy as np

from luckbase.solver.errors import StateError
from luckbase.solver.game.arrays import Floats, Ints
from luckbase.solver.game.capabilities import Event, Follow, Position
from luckbase.solver.game.game import Game
from luckbase.solver.game.rules import TERMINAL, Numbers
from luckbase.solver.games.press_your_luck.board import effects_of, outcome_distribution
from luckbase.solver.games.press_your_luck.outcomes import (
    LOSES,
    MAX_DOLLARS,
    MAY_LOSE,
    Effect,
    Slide,
    round_half_up,
)
from luckbase.solver.games.press_your_luck.rules import (
    CAP,
    MERGES,
    PLAY,
    STOP,
    board_of,
    by_field,
    spin,
)
from luckbase.solver.search.expand import Expanded, expand
from luckbase.solver.sentences import many, shorten

BEYOND = 10**12  # dollars that no score reaches; used as the cap


class LuckWords(Follow):
    """The words for a board's games."""

    def __init__(self, game: Game) -> None:
        self.game, self.board, self.players = game, board_of(game), game.players
        self.ints = game.numbers.ints.copy()
        self.ints[CAP], self.ints[MERGES] = BEYOND, 0
        numbers = Numbers(self.ints, game.numbers.reals)
        self.exact = Game(game.board, replace(game.rules, numbers=numbers))
        self._stop = int(self.ints[STOP]) or -1  # the action of stopping against the house
        self.outcomes = outcome_distribution(self.board)
        self.effects = sorted({effect for effects, _ in self.outcomes.others for effect in effects})
        self.slides: dict[str, Effect] = {}
        """What a spin can hit, as in a line -> its effect in dollars."""
        for slide in sorted({leaf.slide for leaf in self.board.leaves()}):
            for effect in effects_of(self.board, slide, exact=True):
                self.slides.setdefault(_called(slide, effect), effect)

    @property
    def words(self) -> Sequence[tuple[str, str]]:
        return (
            ("Ed 0, 4 spins; " + "Peter 2500, 3 spins; " * (self.players == 3)
             + "Michael 1000, 1 spin, 1 whammy",
             "who has what, in turn order; passed spins as 2 passed"),
            ("Ed 3000 + spin", "what a spin brought; also 1500, prize, prize 2100, whammy, double"),
            ("Ed passes 4 to Peter", "all earned spins go to another player"),
            ("Ed may take 2000 or 500 + spin", "slides to choose from; then: Ed takes 2000"),
        )  # fmt: skip

    # --- players' holdings -------------------------------------------------------------------

    def begin(self, text: str) -> Position | None:
        if ";" not in text:
            return None
        parts = [part.strip() for part in text.split(";") if part.strip()]
        if len(parts) != self.players:
            raise StateError(f"{many(len(parts), 'player')}; expected {self.players}, a semicolon "
                             "between them")  # fmt: skip
        names, numbers, given = zip(*map(self._desk, parts), strict=True)
        for i, name in enumerate(names):
            if name.lower() in [earlier.lower() for earlier in names[:i]]:
                raise StateError(f"'{name}' is there twice; expected a name for each player")
        values = np.zeros(self.game.field_count, np.int64)
        values[: 4 * self.players] = np.array(numbers).T.ravel()
        _, earned, passed, _ = by_field(values)
        if not (earned + passed).any() and not re.search(r"\b0 (spin|earned|passed)", text, re.I):
            example = "; ".join([f"{names[0]} 5000, 2 spins", *(f"{n} 3000" for n in names[1:])])
            raise StateError(f"who has spins? for example {example}")
        assumed = tuple(f"{name}'s dollars" for name, is_given in zip(names, given, strict=True)
                        if not is_given)  # fmt: skip
        return replace(self._position(names, values), assumed=assumed)

    def _desk(self, part: str) -> tuple[str, list[int], bool]:
        """Return a player's name, their counts, and whether the dollars were given.

        The counts are dollars, earned spins, passed spins and whammies. Raises StateError.
        """
        clean = re.sub(r"(?<=\d),(?=\d{3}\b)", "", part.replace("$", ""))
        words = re.sub(r"\s*([,:])\s*", r"\1 ", clean).split()
        for k in range(1, len(words) + 1):
            name, counts = " ".join(words[:k]).rstrip(",:"), " ".join(words[k:])
            if re.fullmatch(_NAME, name, re.I) and re.fullmatch(_COUNTS, counts, re.I):
                return name, *self._counts(counts)
        head, *others = re.split(", ?", " ".join(words))
        if re.search(r"\s\d[\d.]*k?$", head, re.I):
            unknown = next((each for each in others if not re.fullmatch(_COUNT, each, re.I)), head)
            raise StateError(f"'{shorten(unknown, 40)}': expected so many spins, passed or "
                             "whammies, as in 2 spins, 1 passed, 1 whammy")  # fmt: skip
        raise StateError(f"'{shorten(part, 60)}': expected a name, their dollars and their spins, "
                         "as in Ed 0, 4 spins")  # fmt: skip

    def _counts(self, text: str) -> tuple[list[int], bool]:
        """Return the numbers of `_desk`. A first bare number is dollars, a second earned spins."""
        numbers, dollars_given = [0, 0, 0, 0], False
        for count, kind, out, bare, thousands in re.findall(_COUNT, text, re.I):
            if out:
                numbers[3] = self.board.rules.max_whammies
            elif kind:
                numbers[1 + _KINDS[kind.lower()]] += int(count)
            elif not dollars_given:
                dollars_given = True
                numbers[0] = round(float(bare) * (1000 if thousands else 1))
            else:
                numbers[1] += int(float(bare))
        return numbers, dollars_given

    def _position(self, names: Sequence[str], values: Ints) -> Position:
        """Return the position of values (fields,) in exact dollars. Raises StateError."""
        unit, cap = self.board.solve.score_unit, self.board.solve.score_cap
        rounded = values.copy()
        scores = by_field(rounded)[0]
        scores[:] = np.minimum((2 * scores + unit) // (2 * unit) * unit, cap)  # halves up
        state: Ints = self.game.canonical_states(rounded)[0]
        edges = self._edges(values)
        up = -1 if edges.kinds[0] == TERMINAL else int(edges.actors[0])
        return Position(tuple(names), values, state, up)

    def _edges(self, values: Ints) -> Expanded:
        return expand(self.exact, values.reshape(1, -1))

    def place(self, names: Sequence[str], state: Ints) -> Position:
        return self._position(names, self.game.fields.values(state.reshape(1, -1))[0])

    def desk(self, position: Position, player: int) -> str:
        score, earned, passed, whammies = self._holdings(position, player)
        parts = [f"${score:,}"]
        parts += [many(earned, "spin")] * bool(earned) + [f"{passed} passed"] * bool(passed)
        parts += [many(whammies, "whammy", "whammies")] * bool(whammies)
        return ", ".join(parts)

    def on_grid(self, position: Position) -> Position:
        return replace(self._position(position.names, position.values), assumed=position.assumed)

    def _holdings(self, position: Position, player: int) -> list[int]:
        """Return a player's dollars, earned spins, passed spins and whammies."""
        return [int(column[player]) for column in by_field(position.values)]

    def note(self, position: Position) -> str:
        cap = self.board.solve.score_cap
        notes = []
        if position.assumed:
            notes.append(f"not given, so taken as 0: {', '.join(position.assumed)}")
        if over := [name for i, name in enumerate(position.names) if position.values[i] > cap]:
            notes.append(
                f"{' and '.join(over)}: more than ${cap:,} counts as that, the board's "
                "score_cap, at which a player passes if they may"
            )
        return "; ".join(notes)

    def neighbors(self, position: Position) -> tuple[Floats, Ints, str]:
        unit, cap = self.board.solve.score_unit, self.board.solve.score_cap
        scores = np.minimum(by_field(position.values)[0], cap)
        low = scores // unit * unit
        share = (scores - low) / unit  # of the grid value above
        weights, states = [], []
        for above in product((0, 1), repeat=self.players):
            weight = np.prod(np.where(above, share, 1 - share))
            if weight > 0:
                values = position.values.copy()
                by_field(values)[0][:] = low + np.multiply(above, unit)
                weights.append(weight)
                states.append(self.game.canonical_states(values)[0])
        between = ", ".join(
            f"{name} between ${least:,} and ${least + unit:,}"
            for name, least, part in zip(position.names, low.tolist(), share.tolist(), strict=True)
            if part
        )
        return np.array(weights), np.array(states), between

    # --- events ------------------------------------------------------------------------------

    def next(self, position: Position, player: int, text: str) -> tuple[Event, Position]:
        name, who = position.names[player], position.names[position.up]
        if position.up < 0:
            raise StateError("the game is over; expected undo, or a line that says who has what")
        if player != position.up:
            raise StateError(
                f"{name} is not up: {who} is, who has {self.desk(position, position.up)}"
            )
        edges = self._edges(position.values)
        text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text.replace("$", "")).strip(" .!").lower()
        if self._offer_at(position.values):
            return self._take(position, edges, text)
        if re.match(r"pass(es|ed)?\b", text):
            return self._pass(position, edges, text)
        if re.fullmatch(r"stop(s|ped)?", text) and self._stop in edges.actions:
            after = edges.children[np.argmax(edges.actions == self._stop)]
            return Event(self._stop, f"{name} stops"), self._position(position.names, after)
        if match := re.fullmatch(r"(?:may take|can take|is offered|offered) (.*)", text):
            return self._offer(position, re.split(r",? or |, ", match[1]))
        slide, effect = self._hit(position, text)
        return Event(PLAY, f"{name} {slide}"), self._after(position, effect)

    def _after(self, position: Position, effect: Effect) -> Position:
        """Return the position after a spin with an effect in dollars."""
        after = position.values.copy()
        spin(self.ints, position.values, position.up, tuple(effect), after)
        return self._position(position.names, after)

    def _hit(self, position: Position, text: str) -> tuple[str, Effect]:
        """Return a slide as in `slides`, and its effect in dollars. Raises StateError."""
        name, slide = position.names[position.up], _plain(text)
        prize = re.fullmatch(r"prize (\d{1,9})( \+ .*)?", slide)
        effect = self.slides.get(f"prize{prize[2] or ''}" if prize else slide)
        if effect is None:
            raise StateError(self._no_such(position, name, slide))
        if effect.kind == MAY_LOSE and not self._has_whammy(position):
            raise StateError(f"{name} has no whammy to lose; expected the money")
        if prize:
            effect = effect._replace(units=int(prize[1]))
            if effect.units > MAX_DOLLARS:
                raise StateError(f"${effect.units:,} is too large; expected at most "
                                 f"${MAX_DOLLARS:,}")  # fmt: skip
        elif re.match("prize\\b", slide) and effect.units:
            slide = slide.replace("prize", f"prize {effect.units}", 1)  # the dollars assumed
        return slide, effect

    def _no_such(self, position: Position, name: str, slide: str) -> str:
        """Return a sentence for an unknown slide, with similar slides of the board."""
        number = re.match(r"\d+", slide)
        near = get_close_matches(slide, self.slides, n=2) or [*self.slides][-2:]
        if number:
            paid = [each for each in self.slides if each[0].isdigit()]
            spins = slide.partition(" ")[2]
            paid.sort(key=lambda each: abs(int(each.split()[0]) - int(number[0])))
            paid.sort(key=lambda each: each.partition(" ")[2] != spins)
            near = [each for each in paid if each.split()[0] == number[0]] or paid[:2]
        problem = f"no slide of this board is '{shorten(slide, 40)}'; " if slide else ""
        expected = " or ".join(f"{name} {each}" for each in near)
        passing = ", or whom they pass to" if self._passes(self._edges(position.values)) else ""
        prize = f"; for a prize write {name} prize {slide}" if self.board.prize_value else ""
        return f"{problem}expected what {name} got, as in {expected}{passing}{prize * bool(number)}"

    def _take(self, position: Position, edges: Expanded, text: str) -> tuple[Event, Position]:
        """Return the event and position after a player takes one of the slides offered."""
        name, first = position.names[position.up], self.players + 1
        actions = {_same(each): first + i for i, each in enumerate(self.effects)
                   if first + i in edges.actions}  # fmt: skip
        try:
            slide, effect = self._hit(position, text)
            action = actions[_same(self._in_units(effect))]
        except (StateError, KeyError):
            takes = " or ".join(self.lines(position))
            raise StateError(f"{name} has no such choice; expected {takes}") from None
        return Event(action, f"{name} takes {slide}"), self._after(position, effect)

    def _in_units(self, effect: Effect) -> Effect:
        units = round_half_up(effect.units, self.board.solve.score_unit)
        return effect._replace(units=min(units, self.board.cap_units))

    def _offer_at(self, values: Ints) -> int:
        return int(values[-1]) if len(values) > 4 * self.players else 0

    def _has_whammy(self, position: Position) -> bool:
        return self._holdings(position, position.up)[3] > 0

    def _offer(self, position: Position, parts: Sequence[str]) -> tuple[Event, Position]:
        """Return the event and position after a spin that offers a choice of slides."""
        name, has = position.names[position.up], self._has_whammy(position)
        slides, effects = zip(*(self._hit(position, part.strip()) for part in parts), strict=True)
        offered, text = [_same(self._in_units(each)) for each in effects], " or ".join(slides)
        lists = [
            [_same(item) for item in effects if item.kind != MAY_LOSE or has]
            for effects, _ in self.outcomes.others
        ]
        meant = [i for i, item in enumerate(lists) if {*item} == {*offered} and len(item) > 1]
        if not meant:
            raise StateError(f"no spin of this board leaves {name} the choice of {text}; write "
                             f"what {name} got")  # fmt: skip
        values = position.values.copy()
        values[-1] = 1 + next((i for i in meant if lists[i] == offered), meant[0])
        event = Event(PLAY, f"{name} may take {text}")
        return event, self._position(position.names, values)

    def _passes(self, edges: Expanded) -> list[int]:
        """Return the players to whom the player up may pass."""
        return [each - 1 for each in edges.actions.tolist() if PLAY < each <= self.players]

    def _pass(self, position: Position, edges: Expanded, text: str) -> tuple[Event, Position]:
        name, allowed = position.names[position.up], self._passes(edges)
        _, earned, passed, _ = self._holdings(position, position.up)
        if not allowed:
            why = "is behind all others and must play (third_place_spins)"
            if passed or self._stop in edges.actions:
                why = f"has {passed} passed and must play them" if passed else "is alone"
            raise StateError(f"{name} {why}; expected what {name} got, as in whammy")
        whom = " or ".join(position.names[i] for i in allowed)
        form = r"pass(?:es|ed)?(?: (?:all )?(\d+))?(?: spins?)?(?: to (.+))?"
        match, right = re.fullmatch(form, text), f"expected {name} passes {earned} to {whom}"
        if match is None or int(match[1] or earned) != earned:
            raise StateError(f"'{shorten(text, 40)}': {name} has {many(earned, 'earned spin')} and "
                             f"passes all of them; {right}")  # fmt: skip
        if match[2] is None and len(allowed) > 1:
            raise StateError(f"to whom? {right}")
        to = allowed[0] if match[2] is None else self.player(position, match[2])
        if to not in allowed:
            raise StateError(
                f"{name} may not pass to {position.names[to]}: spins go to the highest score still "
                f"in; {right}"
            )
        after = edges.children[np.argmax(edges.actions == to + 1)]
        event = Event(to + 1, f"{name} passes {earned} to {position.names[to]}")
        return event, self._position(position.names, after)

    # --- lines -------------------------------------------------------------------------------

    def lines(self, position: Position) -> Iterator[str]:
        if position.up < 0:
            return
        name, earned = position.names[position.up], self._holdings(position, position.up)[1]
        edges, has = self._edges(position.values), self._has_whammy(position)
        lists = [self._available(effects, has) for effects, _ in self.outcomes.others]
        if offered := self._offer_at(position.values):
            yield from (f"{name} takes {slide}" for slide in lists[offered - 1])
        elif PLAY in edges.actions:
            yield from (f"{name} {slide}" for slide, effect in self.slides.items()
                        if effect.kind != MAY_LOSE or has)  # fmt: skip
            yield from (f"{name} may take {' or '.join(each)}" for each in lists if each[1:])
        for to in self._passes(edges):
            yield f"{name} passes {earned} to {position.names[to]}"
        if self._stop in edges.actions:
            yield f"{name} stops"

    def _available(self, effects: Sequence[Effect], has: bool) -> list[str]:
        """Return the slides of a list that a player can take; has: whether they have a whammy."""
        slides = reversed(self.slides.items())  # the first of those with the same effect
        named = {_same(self._in_units(each)): slide for slide, each in slides}
        return [named[_same(each)] for each in effects if each.kind != MAY_LOSE or has]


_KINDS = {
    "spin": 0, "spins": 0, "earned": 0, "earned spin": 0, "earned spins": 0, "passed": 1,
    "passed spin": 1, "passed spins": 1, "whammy": 2, "whammies": 2,
}  # fmt: skip
_NAMES = "|".join(sorted(_KINDS, key=len, reverse=True))
_NAME = r"player \d+|[^,]*[^,\s\d][^,\s]*"
_COUNTED = rf"(\d{{1,3}}) ({_NAMES})\b|(out)\b"
_BARE = r"(\d{1,9}(?:\.\d+)?)(k)?(?![\w.])"
_COUNT = f"(?:{_COUNTED}|{_BARE})"
_COUNTS = f"(?:(?:{_COUNTED})(?:,? | and |,?$)|{_BARE}(?:, | and | (?={_COUNTED})|,?$))*"
"""A player's holdings in any order: counts with a noun, ``2 passed spins``, and bare numbers,
``5k``. A second bare number needs a comma, as in ``player 2 5000, 3``."""


def _same(effect: Effect) -> Effect:
    """Return an effect, the same for effects that are described alike."""
    return effect._replace(kind=LOSES) if effect.kind == MAY_LOSE else effect


def _called(slide: Slide, effect: Effect) -> str:
    """Return a slide as in a line, ``3000 + spin``; of money or a whammy less, the part taken."""
    if effect.kind in (LOSES, MAY_LOSE):
        return "lose a whammy"
    return str(slide.number) if slide.kind == "money or lose a whammy" else str(slide)


def _plain(text: str) -> str:
    """Return what a spin hit as `_called` has it: ``hits a whammy`` is ``whammy``."""
    for form, plain in (
        (r" ?(?:\+|\b(?:and|plus)\b) ?", " + "),
        (r"^(?:takes?|took|gets?|got|wins?|won|hits?|spins?|spun) ", ""),
        (r"^an? ", ""),
        (r"^(?:loses?|lost) (?:an? )?whammy$", "lose a whammy"),
        (r"\+ (?:an? |1 )*spins?$", "+ spin"),
        (r"\+ (\d+) spins?$", r"+ \1 spins"),
    ):
        text = re.sub(form, plain, text)
    return text
