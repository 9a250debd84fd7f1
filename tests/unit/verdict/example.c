#include <stdio.h>
#include <wlb_verdict.h>

int main(void)
{
	struct wlb_verdict_layout layout = {.tp = 1, .cp = 1, .pp = 1, .dp = 8, .ranks_per_node = 4};
	struct wlb_verdict_world *world = wlb_verdict_world_of_layout(&layout, NULL);
	struct wlb_verdict_detector *detector = wlb_verdict_new(world, NULL, NULL);
	struct wlb_verdict verdicts[8];
	for (int64_t step = 0; step < 60; step++) {
		for (int32_t rank = 0; rank < 8; rank++) { /* what your trainer measured */
			double computed_s = rank == 3 && step >= 30 ? 1.2 : 1.0;
			struct wlb_verdict_step ended = {
				.rank = rank, .step = step, .seconds = 1.3, .computed_s = computed_s, .work = 1.0};
			wlb_verdict_take_step(detector, &ended, NULL);
		}
		int32_t count = wlb_verdict_judge(detector, 1.3 * (double)step, verdicts, 8);
		for (int32_t v = 0; v < count && v < 8; v++)
			printf("step %lld: %s: %s\n", (long long)step, wlb_verdict_kind_name(verdicts[v].kind),
			       verdicts[v].evidence);
	}
	wlb_verdict_free(detector);
	wlb_verdict_world_free(world);
}
