/* Compares attention of a CUDA device with plain loops, and a second run with the first. */
#include "tests/gpu/attention_case.h"

#include <stdio.h>

static const int DIMS[] = {64, 96, 128, 256};
enum { DIM_COUNT = sizeof(DIMS) / sizeof(*DIMS) };

/* One row of the table; returns whether it passed. */
static int check_case(struct wlb_device *cuda, const struct attention_case *of, int is_bf16, int head_dim)
{
	struct attention_run run, again;
	struct wlb_error error = {"wrong"};
	int same = 0;
	double largest = 0;
	int result = attention_case_run(&run, cuda, of, is_bf16, head_dim, &error);
	if (result == 0)
		largest = attention_case_error(&run);
	if (attention_case_run(&again, cuda, of, is_bf16, head_dim, &error) == 0 && result == 0)
		same = attention_case_same(&run, &again);
	attention_case_free(&run);
	attention_case_free(&again);
	const int passed = result == 0 && largest <= 1 && same;
	printf("attention %-8s %-15s head_dim %-3d  error %.3f of its bound, second run %s  %s%s\n",
	       is_bf16 ? "bfloat16" : "float32", of->name, head_dim, largest, same ? "same" : "DIFFERS",
	       passed ? "ok" : "FAILED ", result != 0 ? error.message : "");
	return passed;
}

int wlb_check_attention(struct wlb_device *cuda, int *failed);

/* Prints a row of the table for each case, type and head_dim; returns how many passed. */
int wlb_check_attention(struct wlb_device *cuda, int *failed)
{
	int passed = 0;
	for (int c = 0; c < ATTENTION_CASE_COUNT; c++)
		for (int is_bf16 = 0; is_bf16 < 2; is_bf16++)
			for (int d = 0; d < DIM_COUNT; d++)
				if (check_case(cuda, &ATTENTION_CASES[c], is_bf16, DIMS[d]))
					passed++;
				else
					(*failed)++;
	return passed;
}
