import argparse
import time

import torch
from housekeeping import peak_megabytes, tidy
from ontology import RELATIONS, facts, grow
from scorer import LinkScorer
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--concepts", type=int, default=2500)
parser.add_argument("--batch-size", type=int, default=1280)
parser.add_argument("--steps", type=int, default=110)
parser.add_argument("--tidy-every", type=int, default=1)
parser.add_argument("--report-every", type=int, default=25)


def batches(triples, size, generator):
    while True:
        for rows in torch.randperm(len(triples), generator=generator).split(size):
            if len(rows) == size:
                yield triples[rows].unbind(dim=1)


def suggest(model, concepts, code):
    with torch.no_grad():
        query = model.query(torch.tensor([code]), torch.tensor([RELATIONS.index("treats")]))
        best = (query @ model.concept.weight.T).squeeze(0).topk(3).indices.tolist()
    return ", ".join(str(concepts[tail]) for tail in best)


def main(args):
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(4)
    torch.manual_seed(4)
    concepts = grow(args.concepts, seed=4)
    triples = torch.tensor(facts(concepts))
    model = LinkScorer(len(concepts), len(RELATIONS))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    target = torch.arange(args.batch_size)
    source = batches(triples, args.batch_size, generator)

    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        head, relation, tail = next(source)
        loss = F.cross_entropy(model(head, relation, tail), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if args.tidy_every and step % args.tidy_every == 0:
            tidy()
        if step % args.report_every == 0:
            print(f"step {step}: loss {loss.item():.4f}, peak {peak_megabytes():.0f} MB")
    elapsed = time.perf_counter() - start

    print(f"{concepts[17]} treats: {suggest(model, concepts, 17)}")
    print(f"trained {args.steps} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main(parser.parse_args())
