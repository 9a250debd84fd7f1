"""The records of two runs, steps and evaluations, compared."""

INPUTS = ("step", "tokens", "documents", "held_tokens", "eval_tokens")
RESULTS = ("loss", "grad_norm", "eval_loss")


def values(records, name):
    return [record[name] for record in records if name in record]


def same_inputs(records, others):
    """Whether both have the same steps and evaluations, of the same documents."""
    return [[record.get(name) for name in INPUTS] for record in records] == \
        [[other.get(name) for name in INPUTS] for other in others]


def difference(records, others):
    """The greatest relative difference of records of the same steps, and where it is."""
    return max((abs(record[name] - other[name]) / abs(other[name]), f"{name} of step {record['step']}")
               for record, other in zip(records, others, strict=True) for name in RESULTS if name in other)
