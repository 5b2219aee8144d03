"""Games made for tests."""

from pydantic import create_model

from luckbase.game import Board, Section, option


def board(name, **options):
    """The class of a game's boards; options: the default, least and greatest value of each."""
    fields = {key: (type(given[0]), option(*given)) for key, given in options.items()}
    rules = create_model("Options", __base__=Section, **fields)
    made = create_model(name, __base__=Board, rules=(rules, rules()))
    made.Options = rules
    return made
