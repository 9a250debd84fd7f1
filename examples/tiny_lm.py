"""A language model of some thousand parameters and its data, for the examples. A batch depends on the step alone and is divided among
the ranks, so training goes on alike on other ranks."""
import torch
from torch import nn

VOCABULARY, BATCH, LENGTH = 64, 48, 32


class TinyLM(nn.Sequential):
    """Predicts each token from the one before it; forward() returns the loss."""

    def __init__(self):
        torch.manual_seed(1)
        super().__init__(nn.Embedding(VOCABULARY, 64), nn.Linear(64, 128), nn.GELU(), nn.Linear(128, VOCABULARY))

    def forward(self, tokens):
        logits = super().forward(tokens[:, :-1])
        return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def batch(step, rank=0, world_size=1):
    """The rank's rows of the batch of that step: in each row a token is 5 times the one before it, plus 0, 1 or 2."""
    generator = torch.Generator().manual_seed(step)
    tokens = torch.randint(VOCABULARY, (BATCH, LENGTH), generator=generator)
    noise = torch.randint(3, (BATCH, LENGTH), generator=generator)
    for i in range(1, LENGTH):
        tokens[:, i] = (5 * tokens[:, i - 1] + noise[:, i]) % VOCABULARY
    return tokens[rank::world_size]
