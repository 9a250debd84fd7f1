/* Any reports to a detector of faulty ranks: refused or borne, and what it tells is within its limits. */
#include <math.h>
#include <string.h>

#include "libverdict/wlb_verdict.h"
#include "tests/fuzz/scratch.h"

enum { MOST_REPORTS = 400, MOST_CALLS = 4 };

struct input {
	const uint8_t *data;
	size_t bytes;
};

static uint8_t next(struct input *input)
{
	if (input->bytes == 0)
		return 0;
	input->bytes--;
	return *input->data++;
}

/* Small numbers, and now and then any bits at all. */
static int64_t number(struct input *input)
{
	uint8_t kind = next(input);
	if (kind < 250)
		return (int64_t)(kind % 32) - 1;
	uint64_t bits = 0;
	for (int i = 0; i < 8; i++)
		bits = bits << 8 | next(input);
	return (int64_t)bits;
}

static double real(struct input *input)
{
	int64_t bits = number(input);
	double value;
	if (bits >= -1 && bits < 32)
		return (double)bits * 0.37;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void give_state(struct wlb_verdict_detector *detector, struct input *input, double *now_s)
{
	struct wlb_verdict_call calls[MOST_CALLS];
	int32_t count = next(input) % (MOST_CALLS + 1);
	for (int32_t i = 0; i < count; i++)
		calls[i] = (struct wlb_verdict_call){(int32_t)number(input), (uint64_t)number(input),
		                                     (uint64_t)number(input)};
	*now_s += next(input) / 100.0;
	struct wlb_verdict_state state = {.rank = (int32_t)number(input),
	                                  .report = (uint64_t)number(input),
	                                  .arrived_s = next(input) < 240 ? *now_s : real(input),
	                                  .activity = (enum wlb_verdict_activity)(next(input) % 9),
	                                  .activity_s = real(input),
	                                  .process = (enum wlb_verdict_process)(next(input) % 6),
	                                  .step = number(input),
	                                  .work = real(input),
	                                  .group = (int32_t)number(input),
	                                  .sequence = (uint64_t)number(input),
	                                  .received_bytes = real(input),
	                                  .calls = calls,
	                                  .call_count = count};
	wlb_verdict_take_state(detector, &state, NULL);
}

static void give_step(struct wlb_verdict_detector *detector, struct input *input, int64_t *step)
{
	struct wlb_verdict_transfer transfer = {(int32_t)number(input), number(input), real(input), real(input)};
	*step += next(input) % 2;
	struct wlb_verdict_step ended = {.rank = (int32_t)number(input),
	                                 .step = next(input) < 240 ? *step : number(input),
	                                 .seconds = real(input),
	                                 .aside_s = real(input),
	                                 .computed_s = real(input),
	                                 .work = real(input),
	                                 .loader_s = real(input),
	                                 .storage_s = real(input),
	                                 .has_loss = next(input) & 1,
	                                 .loss = real(input),
	                                 .has_gradient_norm = next(input) & 1,
	                                 .gradient_norm = real(input),
	                                 .transfers = &transfer,
	                                 .transfer_count = next(input) & 1};
	wlb_verdict_take_step(detector, &ended, NULL);
}

static void give_sample(struct wlb_verdict_detector *detector, struct input *input)
{
	double entered_s[8], left_s[8];
	for (int i = 0; i < 8; i++) {
		entered_s[i] = real(input);
		left_s[i] = real(input);
	}
	struct wlb_verdict_sample sample = {(int32_t)number(input), 1, 1.0, entered_s, left_s, next(input) % 9};
	wlb_verdict_take_sample(detector, &sample, NULL);
}

static void check_verdicts(struct wlb_verdict_detector *detector, double now_s, int32_t ranks)
{
	struct wlb_verdict verdicts[4];
	int32_t count = wlb_verdict_judge(detector, now_s, verdicts, 4);
	must(count >= 0);
	for (int32_t v = 0; v < count && v < 4; v++) {
		must(verdicts[v].certainty >= 0.0 && verdicts[v].certainty <= 1.0);
		must(verdicts[v].rank_count >= 1 && memchr(verdicts[v].evidence, '\0', sizeof(verdicts[v].evidence)));
		must(!isnan(verdicts[v].cost_percent) && verdicts[v].evidence[0] != '\0');
		for (int32_t i = 0; i < verdicts[v].rank_count && i < WLB_VERDICT_RANKS; i++)
			must(verdicts[v].ranks[i] >= 0 && verdicts[v].ranks[i] < ranks);
	}
}

static void ask_delay(const struct wlb_verdict_detector *detector, struct input *input,
                      const struct wlb_verdict_world *world)
{
	struct wlb_verdict_delay delay;
	int32_t source = (int32_t)number(input), destination = (int32_t)number(input);
	int of_nodes = next(input) & 1, below = of_nodes ? world->nodes : world->ranks;
	int told = of_nodes ? wlb_verdict_delay_of_nodes(detector, source, destination, &delay, NULL)
	                    : wlb_verdict_delay_of_ranks(detector, source, destination, &delay, NULL);
	if (told < 0)
		return;
	must(source >= 0 && source < below && destination >= 0 && destination < below);
	must(delay.streams >= 1 && memchr(delay.evidence, '\0', sizeof(delay.evidence)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct input input = {data, bytes};
	struct wlb_verdict_layout layout = {1 + next(&input) % 2, 1 + next(&input) % 2, 1 + next(&input) % 2,
	                                    1 + next(&input) % 3, 1 + next(&input) % 4};
	struct wlb_verdict_world *world = wlb_verdict_world_of_layout(&layout, NULL);
	must(world != NULL);
	struct wlb_verdict_detector *detector = wlb_verdict_new(world, NULL, NULL);
	must(detector != NULL);
	double now_s = 0.0;
	int64_t step = 0;
	for (int i = 0; i < MOST_REPORTS && input.bytes > 0; i++)
		switch (next(&input) % 8) {
		case 0:
			check_verdicts(detector, now_s, world->ranks);
			break;
		case 1:
			give_sample(detector, &input);
			break;
		case 2:
			ask_delay(detector, &input, world);
			break;
		case 3:
		case 4:
			give_step(detector, &input, &step);
			break;
		default:
			give_state(detector, &input, &now_s);
		}
	check_verdicts(detector, now_s + 30.0, world->ranks);
	wlb_verdict_free(detector);
	wlb_verdict_world_free(world);
	return 0;
}
