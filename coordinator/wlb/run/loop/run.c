/* wlb run: runs a command to its end on the remaining nodes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/fault_kinds.h"
#include "common/json_text.h"
#include "coordinator/client/reporter.h"
#include "coordinator/slurm/slurm_api.h"
#include "coordinator/wlb/commands.h"
#include "coordinator/wlb/run/attempt/launch.h"
#include "coordinator/wlb/run/attempt/watch.h"
#include "coordinator/wlb/run/check/suspects.h"
#include "coordinator/wlb/run/command/check_command.h"
#include "coordinator/wlb/run/command/input.h"
#include "coordinator/wlb/run/loop/ask_attempt.h"
#include "coordinator/wlb/run/loop/next.h"
#include "coordinator/wlb/run/plan/placement.h"
#include "coordinator/wlb/run/plan/plan.h"
#include "coordinator/wlb/run/state/deliver_records.h"
#include "coordinator/wlb/run/state/job.h"
#include "coordinator/wlb/run/state/job_tasks.h"
#include "coordinator/wlb/run/state/journal.h"
#include "coordinator/wlb/run/state/old_files.h"
#include "coordinator/wlb/run/state/print.h"
#include "coordinator/wlb/run/state/record.h"
#include "coordinator/wlb/run/state/run_identity.h"
#include "coordinator/wlb/run/state/state.h"
#include "coordinator/wlb/run/stop/grow.h"
#include "coordinator/wlb/run/stop/parent.h"
#include "coordinator/wlb/run/stop/save_and_requeue.h"
#include "coordinator/wlb/run/stop/signals.h"
#include "coordinator/wlb/run/stop/time_limit.h"

/* From the end of srun to the end of this process; with wlb-worker's time before, less than a second. Slurm kills this
 * process KillWait after SIGTERM. */
enum { END_MS = 600 };

/* How long to restart srun while Slurm creates no step for it, and the pauses between. */
enum { STEP_TRIES_MS = 60000, STEP_PAUSE_MS = 1000, STEP_PAUSE_MAX_MS = 8000 };

/* The same while slurmctld does not answer: an upgrade or a failover takes minutes, and no other attempt would do
 * better. */
enum { UNAVAILABLE_TRIES_MS = 30 * 60000 };

/* ---- attempts ------------------------------------------------------------------------------------------------- */

static int new_attempt_id(char id[37], struct wlb_error *error)
{
	unsigned char b[16];
	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		return wlb_fail(error, "no random number for an attempt's id: %s", strerror(errno));
	b[6] = (b[6] & 0x0f) | 0x40;
	b[8] = (b[8] & 0x3f) | 0x80;
	snprintf(id, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3],
	         b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
	return 0;
}

static void attempt_free(struct wlb_attempt *attempt)
{
	wlb_strings_free(attempt->nodes, attempt->node_count);
	attempt->nodes = NULL;
	attempt->node_count = 0;
	wlb_strings_free(attempt->unresponsive, attempt->unresponsive_count);
	attempt->unresponsive = NULL;
	attempt->unresponsive_count = 0;
	free(attempt->switches);
	free(attempt->checkpoint_path);
	attempt->checkpoint_path = NULL;
	attempt->switches = NULL;
	attempt->switch_count = 0;
	json_decref(attempt->gpu_types);
	attempt->gpu_types = NULL;
	json_decref(attempt->suspects);
	attempt->suspects = NULL;
	json_decref(attempt->plan);
	attempt->plan = NULL;
}

static struct wlb_reporter *start_reporter(struct wlb_run *run, const struct wlb_attempt *attempt)
{
	struct wlb_error error;
	struct wlb_reporter_options options = {.run_id = run->id,
	                                       .attempt_id = attempt->id,
	                                       .source = "run",
	                                       .spool_dir = run->job.spool_dir,
	                                       .node = run->job.this_node,
	                                       .rank = -1};
	struct wlb_reporter *reporter =
		wlb_reporter_start(run->connection != NULL ? &run->config : NULL, &options, &error);
	if (reporter == NULL)
		wlb_run_print("this attempt's end will not be recorded: %s", error.message);
	return reporter;
}

static const char *end_state(const struct wlb_attempt *attempt)
{
	if (attempt->exit_code == 0 && !attempt->stopped)
		return "complete";
	return attempt->stopped || attempt->ended_by_order || attempt->cancelled ? "ended" : "failed";
}

static void record_end(const struct wlb_run *run, struct wlb_reporter *reporter, const struct wlb_attempt *attempt)
{
	json_t *data = json_pack("{s:s, s:i, s:o}", "state", end_state(attempt), "exit_code", attempt->exit_code,
	                         "reason", wlb_json_text(attempt->end_reason));
	wlb_run_put_first_exit(run, data);
	wlb_run_record(reporter, "attempt_end", data);
}

static bool has_node(char *const *nodes, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(nodes[i], name) == 0)
			return true;
	return false;
}

/* Records the nodes that Slurm took from the job (--no-kill) while the attempt ran on them: for a trainer other than
 * wlb-worker nothing else reports them. */
static void record_lost_nodes(struct wlb_run *run, struct wlb_reporter *reporter, struct wlb_attempt *attempt)
{
	wlb_run_job_refresh(&run->job);
	for (int i = 0; i < attempt->node_count; i++) {
		const char *node = attempt->nodes[i];
		if (has_node(run->job.nodes, run->job.node_count, node))
			continue;
		wlb_text_format(attempt->end_reason, sizeof(attempt->end_reason), "node %s is lost", node);
		attempt->is_refused = false; /* the next one asks for other nodes */
		wlb_run_record(reporter, "fault",
		               json_pack("{s:s, s:o, s:s}", "kind", wlb_faults[WLB_FAULT_NODE_LOST].name, "node",
		                         wlb_json_text(node), "detail", "Slurm took the node from the job"));
	}
}

/* The layout is that of the coordinator, or of the plan where one was made; where planning failed, it says nothing. */
static void announce_attempt(const struct wlb_run *run, const struct wlb_attempt *attempt, bool is_planned)
{
	char layout[64] = "no layout";
	char *nodes = wlb_hostlist_fold(attempt->nodes, attempt->node_count, NULL);
	/* A first attempt on all nodes needs no reason. */
	bool reason = *attempt->reason && (attempt->number > 1 || attempt->node_count < run->job.node_count);
	if (attempt->has_layout && is_planned)
		wlb_layout_format(&attempt->layout, layout, sizeof(layout));
	wlb_run_print("attempt %d on %s, %s%s%s%s", attempt->number, nodes != NULL ? nodes : "?", layout,
	              reason ? " (" : "", reason ? attempt->reason : "", reason ? ")" : "");
	free(nodes);
}

/* Returns whether srun, which got no step, may be started again; a run that is cancelled meanwhile is no failure of
 * srun. Where it has consumed input it had a step, and a task has written what srun writes without one. */
static bool wait_for_step(struct wlb_run *run, struct wlb_attempt *attempt, int64_t until_ms, int pause_ms)
{
	if (wlb_clock_left_ms(until_ms) == 0 || wlb_run_input_check(&run->input, NULL) != 0)
		return false;
	if (wlb_run_pause(run, pause_ms))
		return true;
	if (run->cancelled) {
		attempt->cancelled = true;
		attempt->exit_code = 128 + SIGTERM;
		snprintf(attempt->end_reason, sizeof(attempt->end_reason),
		         "cancelled while it waited for a Slurm step");
	}
	return false;
}

/* Starts srun until it has a step. Slurm may refuse one for some time after slurmctld was down, or while it cleans up
 * the step before; the command is not the cause. */
static pid_t run_step(struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_reporter *reporter,
                      struct wlb_error *error)
{
	int64_t until_ms = wlb_clock_ms() + STEP_TRIES_MS, unavailable_until_ms = wlb_clock_ms() + UNAVAILABLE_TRIES_MS;
	int pause_ms = STEP_PAUSE_MS;
	int srun_stderr;
	for (;;) {
		pid_t srun = wlb_run_launch(run, attempt, &srun_stderr, error);
		if (srun <= 0) {
			attempt->exit_code = WLB_EXIT_FAILED;
			return srun;
		}
		wlb_run_watch(run, attempt, srun, srun_stderr, reporter);
		/* Once it answers again it has the step before to clean up. */
		if (attempt->is_slurmctld_unavailable && wlb_clock_left_ms(unavailable_until_ms) > 0)
			until_ms = wlb_clock_ms() + STEP_TRIES_MS;
		if (!attempt->no_step || !wait_for_step(run, attempt, until_ms, pause_ms))
			return srun;
		pause_ms = pause_ms < STEP_PAUSE_MAX_MS ? 2 * pause_ms : pause_ms;
	}
}

/* Runs one attempt from start to end. Returns -1 if it could not be started. */
static int run_attempt(struct wlb_run *run, struct wlb_attempt *attempt, struct wlb_error *error)
{
	struct wlb_error reason;
	wlb_run_grow_begin(run, attempt);
	if (attempt->has_layout)
		wlb_run_place_nodes(attempt);
	int planned = wlb_run_plan(run, attempt, &reason);
	run->layout_before = attempt->layout;
	run->attempts = attempt->number;
	announce_attempt(run, attempt, planned == 0);
	memcpy(run->attempt_id, attempt->id, sizeof(run->attempt_id));
	struct wlb_reporter *reporter = start_reporter(run, attempt);
	wlb_run_grow_record(run, reporter);
	wlb_run_suspects_begin(run, attempt, reporter);
	pid_t srun = 1;
	if (planned == 0) {
		if (attempt->is_decided_here)
			wlb_run_record_attempt(reporter, attempt, run->job.restart_count);
		wlb_run_record_placement(attempt);
		if (attempt->plan != NULL)
			wlb_run_record(reporter, "plan", json_incref(attempt->plan));
		srun = run_step(run, attempt, reporter, error);
	} else {
		attempt->exit_code = WLB_EXIT_USAGE;
		wlb_text_format(attempt->end_reason, sizeof(attempt->end_reason), "%s", reason.message);
	}
	wlb_run_suspects_end(run, attempt);
	if (attempt->exit_code > 128 && !run->cancelled && !run->abandoned)
		wlb_run_check_job(run, attempt);
	if (run->abandoned) {
		wlb_reporter_abandon(reporter);
		return 0;
	}
	if (attempt->exit_code != 0 && planned == 0 && !run->cancelled)
		record_lost_nodes(run, reporter, attempt);
	if (attempt->exit_code != 0 && attempt->end_reason[0] == '\0')
		snprintf(attempt->end_reason, sizeof(attempt->end_reason), "srun ended with exit code %d",
		         attempt->exit_code);
	run->end_until_ms = wlb_clock_ms() + END_MS;
	if (reporter != NULL) {
		record_end(run, reporter, attempt);
		run->is_unavailable = wlb_reporter_unavailable(reporter);
		wlb_reporter_stop(reporter, END_MS);
	}
	return srun > 0 ? 0 : -1;
}

/* ---- from attempt to attempt ------------------------------------------------------------------------------------- */

struct turn {
	struct wlb_attempt last; /* id "": none has ended in this start of the job */
	struct wlb_attempt next; /* that is being decided */
	enum wlb_answer answer;  /* since the last one ended */
	char state[32];          /* of the run, by the coordinator's decision */
	struct wlb_error error;  /* of what was tried last */
};

static const struct wlb_attempt *last_of(const struct turn *turn)
{
	return turn->last.id[0] != '\0' ? &turn->last : NULL;
}

static void ask(struct wlb_run *run, struct turn *turn)
{
	const struct wlb_attempt *last = last_of(turn);
	int unavailable_s = last != NULL && last->exit_code != WLB_EXIT_USAGE ? run->options.wait_s : 0;
	if (last != NULL && turn->answer == WLB_ANSWER_NONE)
		wlb_run_print("attempt %d: %s", last->number, last->end_reason);
	attempt_free(&turn->next);
	turn->next = (struct wlb_attempt){.number = run->attempts + 1};
	if (new_attempt_id(turn->next.id, &turn->error) != 0) {
		run->is_not_started = true;
		return;
	}
	if (run->launcher_id[0] == '\0')
		memcpy(run->launcher_id, turn->next.id, sizeof(run->launcher_id));
	turn->answer = WLB_ANSWER_UNAVAILABLE;
	if (run->connection != NULL)
		turn->answer = wlb_run_ask(run, last, unavailable_s, &turn->next, turn->state, &turn->error);
	wlb_run_end_orphaned_step(run);
}

static void start_next(struct wlb_run *run, struct turn *turn)
{
	run->growth_failed = false;
	run->is_not_started = run_attempt(run, &turn->next, &turn->error) != 0;
	attempt_free(&turn->next);
	run->failures += !turn->next.stopped;
	turn->last = turn->next;
	turn->answer = WLB_ANSWER_NONE;
}

static void start_alone(struct wlb_run *run, struct turn *turn)
{
	if (turn->answer == WLB_ANSWER_REFUSED)
		wlb_run_print("the coordinator refuses this run, which continues without it: %s", turn->error.message);
	else if (run->connection != NULL)
		wlb_run_print("continuing without the coordinator, records wait in %s: %s", run->job.spool_dir,
		              turn->error.message);
	run->is_not_started = wlb_run_decide_alone(run, &turn->next, &turn->error) != 0;
	if (!run->is_not_started)
		start_next(run, turn);
}

/* Where Slurm does not requeue the job, the run goes on with the nodes that it has. Returns whether it does. */
static bool is_requeued_to_grow(struct wlb_run *run, struct turn *turn)
{
	bool is_wanted = wlb_run_grow_needs_requeue(run, &turn->last);
	if (is_wanted && wlb_run_requeue(run, &turn->last, &turn->error) == 0)
		return true;
	if (is_wanted)
		wlb_run_print("attempt %d: the job is not requeued to grow: %s", turn->last.number,
		              turn->error.message);
	run->growth_failed = true;
	return false;
}

static void say_end(const struct wlb_run *run, const struct turn *turn, enum wlb_outcome end, char *reason, size_t size)
{
	const char *last = turn->last.end_reason, *error = turn->error.message;
	struct wlb_error why = {0};
	int part = (int)wlb_text_cut(last, 200);
	reason[0] = '\0';
	switch (end) {
	case WLB_OUTCOME_COMPLETE:
		return;
	case WLB_OUTCOME_CANCELLED:
		if (turn->answer == WLB_ANSWER_NONE)
			wlb_text_format(reason, size, "%s", last);
		return;
	case WLB_OUTCOME_NOT_STARTED:
		wlb_text_format(reason, size, "%s", error);
		return;
	case WLB_OUTCOME_NOT_REQUEUED:
		wlb_text_format(reason, size, "%s; %s", last, error);
		return;
	case WLB_OUTCOME_COMMAND:
		wlb_text_format(reason, size, "%s", last);
		return;
	case WLB_OUTCOME_RESTARTS:
		wlb_text_format(reason, size, "no restart is left: --max-restarts allows no more");
		return;
	case WLB_OUTCOME_INPUT:
		wlb_run_input_check(&run->input, &why);
		wlb_text_format(reason, size, "%.*s, and there is no next attempt: %s", part, last, why.message);
		return;
	case WLB_OUTCOME_COORDINATOR:
		wlb_text_format(reason, size, "%s", turn->next.reason);
		return;
	case WLB_OUTCOME_UNAVAILABLE:
		if (run->connection != NULL)
			wlb_text_format(reason, size, "%.*s, and there is no next attempt: %.*s", part, last,
			                (int)wlb_text_cut(error, 700), error);
		else
			wlb_text_format(reason, size, "%.*s, and without a coordinator there is no next attempt", part,
			                last);
		return;
	}
}

/* Prints and records how the run ended. */
static void finish(struct wlb_run *run, const struct turn *turn, const struct wlb_next *next)
{
	char reason[sizeof(turn->last.end_reason) + 2 + sizeof(turn->error.message)], count[32] = "";
	const char *state = next->end == WLB_OUTCOME_COORDINATOR ? turn->state : next->state;
	if (next->end == WLB_OUTCOME_RESTARTS || next->end == WLB_OUTCOME_INPUT)
		wlb_run_print("attempt %d: %s", turn->last.number, turn->last.end_reason);
	say_end(run, turn, next->end, reason, sizeof(reason));
	/* How many a job had before it was requeued is known with the next one. */
	if (run->attempts > 0 || run->job.restart_count == 0)
		snprintf(count, sizeof(count), " after %d attempt%s", run->attempts, run->attempts == 1 ? "" : "s");
	if (run->end_until_ms == 0)
		run->end_until_ms = wlb_clock_ms() + END_MS;
	wlb_run_deliver_last(run);
	wlb_run_end(run, state, next->exit_code, reason);
	wlb_run_print("run %s %s%s%s%s", run->id, state, count, *reason ? ": " : "", reason);
}

static int run_attempts(struct wlb_run *run)
{
	struct turn turn = {.state = "failed"};
	struct wlb_next next;
	bool is_over = false;
	while (!is_over) {
		next = wlb_run_next(run, last_of(&turn), turn.answer);
		switch (next.step) {
		case WLB_NEXT_WAIT:
			ask(run, &turn);
			break;
		case WLB_NEXT_START:
			start_next(run, &turn);
			break;
		case WLB_NEXT_START_ALONE:
			start_alone(run, &turn);
			break;
		case WLB_NEXT_REQUEUE:
			run->requeue_failed = wlb_run_requeue(run, &turn.last, &turn.error) != 0;
			is_over = !run->requeue_failed;
			break;
		case WLB_NEXT_REQUEUE_TO_GROW:
			is_over = is_requeued_to_grow(run, &turn);
			break;
		case WLB_NEXT_FINISH:
			finish(run, &turn, &next);
			is_over = true;
			break;
		case WLB_NEXT_LEAVE:
			is_over = true;
			break;
		}
	}
	attempt_free(&turn.next);
	return next.exit_code;
}

/* ---- the command ---------------------------------------------------------------------------------------------- */

static void open_coordinator(struct wlb_run *run)
{
	struct wlb_error error;
	if (wlb_client_config_load(&run->config, &error) == 0)
		run->connection = wlb_connection_new(&run->config);
	if (run->connection == NULL)
		wlb_run_print("this run is neither recorded nor restarted: %s", error.message);
}

/* Returns -1 with the reason where another `wlb run` of the job has its name. */
static int name_run(struct wlb_run *run, struct wlb_error *error)
{
	const char *id = getenv("WLB_RUN_ID");
	if (wlb_run_identify(run, error) != 0)
		return -1;
	if (id != NULL && *id != '\0' && run->launch == 1)
		snprintf(run->id, sizeof(run->id), "%s", id);
	else if (run->launch == 1)
		snprintf(run->id, sizeof(run->id), "%u", run->job.job_id);
	else
		snprintf(run->id, sizeof(run->id), "%u.%d", run->job.job_id, run->launch);
	return 0;
}

/* --wlb-layout=off: runs srun and nothing else. */
static int run_plain(struct wlb_run *run)
{
	struct wlb_attempt attempt = {.number = 1};
	struct wlb_error error;
	int code = WLB_EXIT_FAILED;
	int srun_stderr;
	pid_t srun = -1;
	wlb_run_print(
		"this job has no --wlb-layout (or off): the command runs once, neither recorded nor started again");
	if (new_attempt_id(attempt.id, &error) == 0 && wlb_run_decide_alone(run, &attempt, &error) == 0)
		srun = wlb_run_launch(run, &attempt, &srun_stderr, &error);
	if (srun > 0) {
		wlb_run_watch(run, &attempt, srun, srun_stderr, NULL);
		code = attempt.exit_code;
		if (attempt.is_refused)
			wlb_run_print("%s", attempt.end_reason);
	} else {
		wlb_run_print("%s", error.message);
	}
	attempt_free(&attempt);
	return code;
}

static int start(struct wlb_run *run, struct wlb_error *error)
{
	if (run->job.off)
		return run_plain(run);
	if (name_run(run, error) != 0)
		return WLB_EXIT_USAGE;
	if (run->launch == 1)
		wlb_run_old_files_remove(&run->job);
	wlb_run_limit_open(run);
	wlb_run_print_obstacle(run);
	wlb_run_grow_open(run, wlb_run_continues_from_save(run));
	open_coordinator(run);
	wlb_run_deliver_others(run);
	wlb_run_input_open(run);
	return run_attempts(run);
}

/* Splits the values of --srun-args into words. */
static int split_srun_args(struct wlb_run_options *o, struct wlb_error *error)
{
	for (int i = 0; i < o->srun_words.count; i++)
		for (char *word = strtok(o->srun_words.texts[i], " \t"); word != NULL; word = strtok(NULL, " \t")) {
			char **more = reallocarray(o->srun_args, (size_t)o->srun_arg_count + 1, sizeof(*more));
			if (more == NULL)
				return wlb_fail(error, "--srun-args: out of memory");
			o->srun_args = more;
			o->srun_args[o->srun_arg_count++] = word;
		}
	return 0;
}

static void open_journal(struct wlb_run *run)
{
	struct wlb_error error;
	if (!run->job.off && wlb_run_journal_open(run, &error) != 0)
		wlb_run_print("%s", error.message);
}

/* What the job and the command are. Returns -1 with what is wrong about them. */
static int load_job(struct wlb_run *run, struct wlb_error *error)
{
	if (run->options.name != NULL && wlb_run_identity_check_name(run->options.name, error) != 0)
		return -1;
	if (wlb_run_limit_read_option(run, error) != 0 || wlb_run_job_load(&run->job, &run->options, error) != 0)
		return -1;
	open_journal(run);
	return wlb_run_job_tasks(run, error) != 0 || wlb_run_check_command(run, error) != 0 ? -1 : 0;
}

static int run_command(void *values, struct wlb_error *error)
{
	struct wlb_run_suspects suspects = {0};
	struct wlb_run run = {.signal_fd = -1,
	                      .parent_fd = -1,
	                      .journal.fd = -1,
	                      .suspects = &suspects,
	                      .progress = {.fd = -1, .saved_step = -1},
	                      .options = *(struct wlb_run_options *)values};
	int code;
	wlb_run_input_reserve();
	wlb_run_parent_open(&run);
	if (wlb_run_signals_block(&run, error) != 0 || split_srun_args(&run.options, error) != 0)
		code = WLB_EXIT_FAILED;
	else if (load_job(&run, error) != 0)
		code = WLB_EXIT_USAGE;
	else
		code = start(&run, error);
	wlb_run_parent_close(&run);
	wlb_run_input_close(&run.input);
	wlb_connection_free(run.connection);
	json_decref(run.calibration);
	wlb_run_job_free(&run.job);
	free(run.options.srun_args);
	if (run.signal_fd >= 0)
		close(run.signal_fd);
	wlb_run_journal_close(&run);
	wlb_slurm_close();
	return code;
}

#define FIELD(name) offsetof(struct wlb_run_options, name)

static const struct wlb_option options[] = {
	{WLB_OPTION(COMMAND, NULL, FIELD(command), "COMMAND [ARGUMENTS]", "what to run, such as wlb-worker train ..."),
         .required = true},
	{WLB_OPTION(
		 INT, "tasks-per-node", FIELD(tasks_per_node), "N",
		 "tasks on each node (default: as the job was submitted; else one for each GPU; else as many as fit, "
		 "SLURM_TASKS_PER_NODE)"),
         .min = 1, .max = 4096},
	{WLB_OPTION(
		TEXT, "spool-dir", FIELD(spool_dir), "DIR",
		"where records wait for the coordinator, on a file system that all nodes share (default: "
		"WLB_SPOOL_DIR, else .wlb in the submit directory, SLURM_SUBMIT_DIR); where DIR is another's or others "
		"may write to it, they wait in .wlb-UID of the job's user in DIR, and beside .wlb")},
	{WLB_OPTION(
		 INT, "max-restarts", FIELD(max_restarts), "N",
		 "end the run after N restarts; those of attempts that saved and stopped when asked to do not count"),
         .max = 1000000, .initial = "100"},
	{WLB_OPTION(INT, "wait", FIELD(wait_s), "SECONDS",
                    "after a fault, wait this long for a coordinator that is unavailable; the start does not "
                    "wait for one"),
         .max = 86400, .initial = "300"},
	{WLB_OPTION(
		TEXT, "stop-before-end", FIELD(stop_before_end), "SECONDS",
		"ask COMMAND, by SIGUSR1 and this many seconds before the job's time limit, to save a checkpoint and "
		"stop; then requeue the job, if it was submitted with --requeue, so that the run continues from that "
		"checkpoint; 0: never; half of the time that the job has left at the start of wlb run, where SECONDS "
		"are not less than all of it (default: for wlb-worker train 3 x its longest save + its longest step, "
		"of the newest 4 to 8 saves and 100 to 200 steps, at least 30 and at most half of that time, and "
		"before its first save a twentieth of it, 300 at most; for other commands 0, because SIGUSR1 kills a "
		"command that does not handle it)")},
	{WLB_OPTION(TEXT, "name", FIELD(name), "NAME",
                    "which run of its script this is, for a script with several: a job that is requeued continues it "
                    "by this name, whatever the words of COMMAND are; 1 to 63 letters, digits, dots, underscores and "
                    "hyphens (default: by the words and the directory of COMMAND, and by their order among equal "
                    "ones)")},
	{WLB_OPTION(LIST, "srun-args", FIELD(srun_words), "ARGS",
                    "more options for srun, separated by spaces, which override those of wlb run; may be given several "
                    "times")},
};

static const struct wlb_option_table table = {
	.command = "wlb run",
	.about = "Inside a Slurm job (sbatch or salloc): starts COMMAND on the job's nodes with srun and PMIx, and "
		 "after the loss of a rank or node starts it again on the remaining nodes, until it succeeds or "
		 "nothing more can be done. Submit the job with --no-kill, or Slurm ends all of it when one node is "
		 "lost. COMMAND finds its layout in WLB_TP, WLB_CP, WLB_PP, WLB_DP. A job without --wlb-layout, or "
		 "with off, gets one srun and nothing else.",
	.notes = "Exit code: that of the last attempt, which is that of its first task to fail (128 + signal if "
		 "killed); 0 only when COMMAND succeeded; 2 for wrong usage; 85 when COMMAND was asked to "
		 "save and stop, and has.",
	.options = options,
	.count = sizeof(options) / sizeof(options[0]),
};

const struct wlb_command wlb_command_run = {
	.name = "run",
	.summary = "Run a command in this Slurm job, and again after a fault",
	.options = &table,
	.values_bytes = sizeof(struct wlb_run_options),
	.run = run_command,
};
