/* Healthy runs, of which no verdict may come. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/verdicts/reporter.h"
#include "tests/bench/verdicts/step_trace.h"
#include "tests/bench/verdicts/trials.h"

enum { MOST_VERDICTS = 16, BETWEEN = 20 };

enum variant {
	STEADY,
	START_UP,
	CHECKPOINTS,
	EVALUATIONS,
	LONG_DOCUMENTS,
	SUSPENDED,
	SUSPENDED_REPORTERS,
	DEBUGGER,
	CLOCK_SET,
	NODE_CLOCK_SET,
	BAD_NETWORK,
	LITTLE_WORK,
};

static int64_t tell(struct wlb_verdict_detector *detector, const struct healthy_kind *kind, int64_t step, double now_s,
                    uint64_t *last_id)
{
	struct wlb_verdict verdicts[MOST_VERDICTS];
	int32_t count = wlb_verdict_judge(detector, now_s, verdicts, MOST_VERDICTS);
	int64_t found = 0;
	for (int32_t v = 0; v < count && v < MOST_VERDICTS; v++) {
		if (verdicts[v].id <= *last_id)
			continue;
		*last_id = verdicts[v].id;
		found++;
		printf("# false: %s, step %lld: %s: %s\n", kind->name, (long long)step,
		       wlb_verdict_kind_name(verdicts[v].kind), verdicts[v].evidence);
	}
	return found;
}

/* What happens in every BETWEEN-th step of a kind of run. */
static double make_special(const struct healthy_kind *kind, struct chance *chance, struct program *program,
                           struct incident *incident, struct report_conditions *conditions)
{
	int32_t ranks = program->cluster->world->ranks, count;
	switch ((enum variant)kind->variant) {
	case CHECKPOINTS:
		incident->checkpoint_s = chance_between(chance, 1.0, 300.0);
		incident->checkpoint_alone = chance_uniform(chance) < 0.5;
		return 1.0;
	case EVALUATIONS:
		incident->evaluation_s = chance_between(chance, 10.0, 300.0);
		return 1.0;
	case LONG_DOCUMENTS:
		return 10.0;
	case SUSPENDED:
	case SUSPENDED_REPORTERS:
		conditions->suspended_at_s = program->ends_s + chance_between(chance, 0.0, 2.0);
		conditions->suspended_s = floor(chance_between(chance, 20.0, 200.0));
		conditions->reporters_too = kind->variant == SUSPENDED_REPORTERS;
		return 1.0;
	case DEBUGGER:
		incident->paused_rank = chance_below(chance, ranks);
		incident->paused_s = chance_between(chance, 20.0, 200.0);
		const struct operation *operations = program_operations(program, incident->paused_rank, &count);
		do
			incident->paused_at = chance_below(chance, count);
		while (operations[incident->paused_at].kind != OPERATION_COMPUTE);
		return 1.0;
	case NODE_CLOCK_SET:
		program->trace.clocks.set_node = chance_below(chance, program->cluster->world->nodes);
		program->trace.clocks.set_at_s = program->ends_s + chance_between(chance, 0.0, 2.0);
		program->trace.clocks.set_by_s = chance_between(chance, -3600.0, 3600.0);
		return 1.0;
	default:
		return 1.0;
	}
}

static int64_t run_program(const struct cluster *cluster, const struct healthy_kind *kind, int64_t steps, uint64_t seed)
{
	struct wlb_verdict_detector *detector = must_detect(cluster);
	struct program *program = must_allocate(1, sizeof(*program));
	struct reporter reporter;
	struct chance chance = chance_of(seed, 5);
	uint64_t last_id = 0;
	int64_t found = 0;
	program_init(program, cluster, seed);
	reporter_init(&reporter, program, detector, seed);
	for (int64_t step = 0; step < steps; step++) {
		struct incident incident = incident_none();
		struct report_conditions conditions = report_conditions_none();
		conditions.lost = conditions.repeated = kind->variant == BAD_NETWORK ? 0.1 : 0.01;
		double times = 1.0;
		/* A run that starts again and again, in the checks of start-up: a detector of its own each time. */
		if (kind->variant == START_UP && step % BETWEEN == 0)
			incident.start_s = chance_between(&chance, 30.0, 600.0);
		if (kind->variant == START_UP && step % BETWEEN == 1)
			times = chance_between(&chance, 1.0,
			                       100.0); /* compilation, which predicted work does not know */
		if (step % BETWEEN == BETWEEN - 1 && step > BETWEEN)
			times = make_special(kind, &chance, program, &incident, &conditions);
		if (kind->variant == CLOCK_SET && step % BETWEEN == 0 && step > 0)
			reporter.ahead_s += chance_uniform(&chance) < 0.5 ? -3600.0 : 3600.0;
		program_step(program, times, &incident);
		if (kind->variant == START_UP)
			for (int32_t d = 0; d < cluster->layout.dp; d++)
				program->trace.work[d] /= times;
		reporter.suspended_s = 0.0;
		while (reporter.told_s < program->ends_s)
			found += tell(detector, kind, step, reporter_second(&reporter, &conditions), &last_id);
		reporter_end_step(&reporter);
		program_report_step(program, detector);
		if (kind->variant == START_UP && step % BETWEEN == BETWEEN - 1) {
			wlb_verdict_free(detector);
			detector = must_detect(cluster);
			reporter.detector = detector;
			last_id = 0;
		}
	}
	reporter_free(&reporter);
	program_free(program);
	free(program);
	wlb_verdict_free(detector);
	return found;
}

/* Steps alone, with all that ranks report of them. */
static int64_t run_steps(const struct cluster *cluster, const struct healthy_kind *kind, int64_t steps, uint64_t seed)
{
	struct wlb_verdict_detector *detector = must_detect(cluster);
	struct step_trace trace;
	uint64_t last_id = 0;
	int64_t found = 0;
	double now_s = 0.0;
	step_trace_init(&trace, cluster, seed, (struct step_reports){.transfers = 1, .loaders = 1, .values = 1});
	if (kind->variant == LITTLE_WORK)
		step_trace_leave_out_fixed_time(&trace);
	while (trace.step < steps) {
		double times = kind->variant == LONG_DOCUMENTS && trace.step % BETWEEN == BETWEEN - 1 ? 10.0 : 1.0;
		step_trace_next(&trace, times, detector);
		now_s += trace.seconds;
		found += tell(detector, kind, trace.step, now_s, &last_id);
	}
	step_trace_free(&trace);
	wlb_verdict_free(detector);
	return found;
}

const struct healthy_kind healthy_kinds[] = {
	{"steady", run_program, STEADY},
	{"start-up and compilation, each 20 steps", run_program, START_UP},
	{"checkpoints of up to 300 s", run_program, CHECKPOINTS},
	{"evaluations of up to 300 s", run_program, EVALUATIONS},
	{"steps of ten times the work", run_program, LONG_DOCUMENTS},
	{"suspended, up to 200 s", run_program, SUSPENDED},
	{"suspended with the reporters", run_program, SUSPENDED_REPORTERS},
	{"a rank in a debugger, up to 200 s", run_program, DEBUGGER},
	{"the clock of the detector set by an hour", run_program, CLOCK_SET},
	{"the clock of a node set by up to an hour", run_program, NODE_CLOCK_SET},
	{"a tenth of the reports lost, a tenth repeated", run_program, BAD_NETWORK},
	{"steady, with transfers, losses and loaders", run_steps, STEADY},
	{"ten times the work, with transfers, losses and loaders", run_steps, LONG_DOCUMENTS},
	{"a replica of half the work, fixed time not predicted", run_steps, LITTLE_WORK},
};
const int32_t healthy_kind_count = sizeof(healthy_kinds) / sizeof(healthy_kinds[0]);
