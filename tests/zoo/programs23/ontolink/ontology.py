"""A made-up clinical ontology: concepts with names, parents and relations."""

import random
from dataclasses import dataclass, field

RELATIONS = ("is_a", "part_of", "treats", "causes", "finding_site")
SYLLABLES = ("car", "di", "o", "neph", "ri", "tis", "hep", "a", "der", "mal", "gas", "tro")


@dataclass
class Concept:
    code: int
    names: list[str]
    links: dict[str, list["Concept"]] = field(default_factory=dict)

    def __str__(self):
        return f"{self.names[0]} [{self.code}]"


def grow(count, seed):
    rng = random.Random(seed)
    concepts = []
    for code in range(count):
        names = ["".join(rng.choices(SYLLABLES, k=4)) for _ in range(rng.randint(1, 3))]
        concept = Concept(code, names)
        for _ in range(min(code, 3)):
            relation = rng.choice(RELATIONS)
            concept.links.setdefault(relation, []).append(concepts[rng.randrange(code)])
        concepts.append(concept)
    return concepts


def facts(concepts):
    """(head, relation, tail) of every link."""
    return [
        (concept.code, RELATIONS.index(relation), tail.code)
        for concept in concepts
        for relation, tails in concept.links.items()
        for tail in tails
    ]
