#include "coordinator/wlb/run/rules/first_exit.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct wlb_first_exit scan(const char *text)
{
	struct wlb_first_exit_scan scan = {0};
	wlb_first_exit_feed(&scan, text, strlen(text));
	return scan.first;
}

static void reads_the_lines_of_srun(void **state)
{
	static const struct {
		const char *line;
		int rank;
		const char *node;
		int signal;
		int exit_code;
	} known[] = {
		{"srun: error: n3: task 5: Killed\n", 5, "n3", SIGKILL, 137},
		{"srun: error: n3: task 5: Exited with exit code 7\n", 5, "n3", 0, 7},
		{"srun: error: n1: tasks 0-1: Segmentation fault (core dumped)\n", 0, "n1", SIGSEGV, 139},
		{"srun: error: n[1-2]: tasks 2-3,7: Aborted\n", 2, "n1", SIGABRT, 134},
		{"srun: error: rack1-n[08-10,12],x: tasks 64,70: Terminated\n", 64, "rack1-n08", SIGTERM, 143},
		{"srun: error: r[1-2]n[3,5]: task 0: Bus error\n", 0, "r1n3", SIGBUS, 135},
		{"srun: error: a,b: tasks 0-1: Exited with exit code 255\n", 0, "a", 0, 255},
		{"srun: error: n3: task 5: Out Of Memory\n", 5, "n3", SIGKILL, 137},
		{"a task died within a linesrun: error: n3: task 5: Killed\n", 5, "n3", SIGKILL, 137},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct wlb_first_exit first = scan(known[i].line);
		assert_true(first.known);
		assert_int_equal(first.rank, known[i].rank);
		assert_string_equal(first.node, known[i].node);
		assert_int_equal(first.signal, known[i].signal);
		assert_int_equal(first.exit_code, known[i].exit_code);
	}
}

static void every_signal(void **state)
{
	char line[128];
	(void)state;
	for (int number = 1; number <= SIGRTMAX; number++) {
		snprintf(line, sizeof(line), "srun: error: n3: task 5: %s\n", strsignal(number));
		assert_int_equal(scan(line).signal, number);
	}
}

static void what_is_no_such_line(void **state)
{
	static const char *const lines[] = {
		"srun: error: n3: task 5: Killed", /* not ended yet */
		"srun: error: n3: task 5: Exited with exit code 0\n",
		"srun: error: n3: task 5: Exited with exit code 256\n",
		"srun: error: n3: task 5: Exited with exit code 7 or so\n",
		"srun: error: n3: task 5: Bored\n",
		"srun: error: n3: task 5: \n",
		"srun: error: n3: task -5: Killed\n",
		"srun: error: n3: task 99999999999999999999: Killed\n",
		"srun: error: n3: Killed\n",
		"srun: error: : task 5: Killed\n",
		"srun: error: Unable to create step for job 12: task 5: Killed\n",
		"n3: task 5: Killed\n",
		"\n",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_false(scan(lines[i]).known);
}

static void a_step_that_slurm_refused_for_now(void **state)
{
	static const struct {
		const char *line;
		bool no_step, is_slurmctld_unavailable;
	} lines[] = {
		{"srun: error: Unable to create step for job 12: Requested nodes are busy\n", true, false},
		{"srun: error: Unable to create step for job 12: Memory required by task is not available\n", true,
	         false},
		{"srun: error: Unable to create step for job 12: More processors requested than permitted\n", false,
	         false},
		{"a task: srun: error: Unable to create step for job 12: Requested nodes are busy\n", false, false},
		{"srun: error: Unable to create step for job 12: Socket timed out on send/recv operation\n", true,
	         true},
		{"srun: error: Unable to confirm allocation for job 12: Unable to contact slurm controller (connect "
	         "failure)\n",
	         true, true},
		{"srun: error: Unable to confirm allocation for job 12: Slurm backup controller in standby mode\n",
	         true, true},
		{"srun: error: Unable to confirm allocation for job 12: Zero Bytes were transmitted or received\n",
	         true, true},
		{"srun: error: Unable to confirm allocation for job 12: Unexpected missing socket error\n", true, true},
		{"srun: error: Unable to create step for job 12: Protocol authentication error\n", true, true},
		{"srun: error: Unable to create step for job 12: Communication connection failure\n", true, true},
		{"srun: error: Unable to confirm allocation for job 12: Message receive failure\n", true, true},
		{"srun: error: Unable to confirm allocation for job 12: Invalid job id specified\n", false, false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct wlb_first_exit_scan scan = {0};
		wlb_first_exit_feed(&scan, lines[i].line, strlen(lines[i].line));
		assert_int_equal(scan.no_step, lines[i].no_step);
		assert_int_equal(scan.is_slurmctld_unavailable, lines[i].is_slurmctld_unavailable);
	}
}

static void the_first_one_counts(void **state)
{
	(void)state;
	assert_int_equal(
		scan("srun: launching\nsrun: error: n3: task 5: Killed\nsrun: error: n1: task 0: Aborted\n").rank, 5);
}

/* A task that wrote to one that had ended was reported before that one, and Slurm ended the third. */
static void a_broken_pipe_has_a_cause(void **state)
{
	static const char pipe[] = "srun: error: n3: task 2: Broken pipe\n"
				   "srun: launch/slurm: _step_signal: Terminating StepId=3.0\n";
	static const struct {
		const char *lines;
		int rank;
	} after[] = {
		{"", 2},
		{"srun: error: n1: task 0: Segmentation fault\nsrun: error: n2: task 1: Aborted\n", 0},
		{"srun: error: n2: task 1: Terminated\nsrun: error: n1: task 0: Exited with exit code 1\n", 0},
		{"srun: error: n2: task 1: Terminated\nsrun: error: n1: task 0: Killed\n", 2},
		{"srun: error: n2: task 1: Broken pipe\n", 2},
		{"slurmstepd-n1: error: *** STEP 3.0 ON n1 CANCELLED AT 2026-11-26T19:51:44 ***\n"
	         "srun: error: n1: task 0: Segmentation fault\n",
	         0},
		{"srun: Force Terminated StepId=3.0\nsrun: error: n1: task 0: Exited with exit code 1\n", 2},
		{"srun: error: task 0 launch failed: Unspecified error\n", 2},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
		struct wlb_first_exit_scan scan = {0};
		wlb_first_exit_feed(&scan, pipe, strlen(pipe));
		wlb_first_exit_feed(&scan, after[i].lines, strlen(after[i].lines));
		assert_int_equal(scan.first.rank, after[i].rank);
		assert_false(scan.launch.known);
	}
}

static void nothing_after_the_step_was_ended_by_others(void **state)
{
	static const char *const lines[] = {
		"slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2026-11-20T12:00:00 ***\n",
		"srun: error: Node failure on n3\n",
		"srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n",
		"srun: Force Terminated StepId=12.0\n",
	};
	char text[256];
	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		snprintf(text, sizeof(text), "%ssrun: error: n3: task 5: Killed\n", lines[i]);
		assert_false(scan(text).known);
	}
}

static void slurm_has_signalled_the_step(void **state)
{
	static const char *const lines[] = {
		"slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2026-11-20T12:00:00 ***\n",
		"0: slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2026-11-20T12:00:00 DUE TO PREEMPTION ***\n",
		"[2026-11-20T12:00:00.123] error: *** STEP 12.0 ON n1 CANCELLED AT 2026-11-20T12:00:00 ***\n",
		"step 7 of 9\rslurmstepd-n1: error: *** JOB 12 ON n1 CANCELLED AT 2026-11-20T12:00:00 ***\n",
	};
	static const char other[] = "srun: error: n3: task 5: Killed\n";
	struct wlb_first_exit_scan scan = {0};
	(void)state;
	wlb_first_exit_feed(&scan, other, strlen(other));
	assert_int_equal(scan.step_signals, 0);
	scan = (struct wlb_first_exit_scan){0};
	/* Each of them is reported: Slurm may signal a step that goes on, and later one that is preempted. */
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		wlb_first_exit_feed(&scan, lines[i], strlen(lines[i]));
		assert_int_equal(scan.step_signals, i + 1);
	}
}

static void what_a_task_logs_says_nothing_of_the_step(void **state)
{
	static const char *const lines[] = {
		"grpc: StatusCode.CANCELLED: the upload is tried again\n",
		"STEP 10 CANCELLED by the user\n",
		"slurmstepd is said to have CANCELLED it\n",
		"trainer: error: *** STEP 12 was CANCELLED ***\n",
		"trainer: error: *** JOB upload ON n1 CANCELLED ***\n",
		"slurmstepd: error: *** STEP 12.0 STEPD TERMINATED ON n1 AT 12:00 ***\n",
		"slurmstepd: error: *** TASK 3 CANCELLED ***\n",
		"nccl: Node failure on a peer, trying again\n",
		"pool: Force Terminated 3 processes that load data\n",
		"elastic: Job step aborted, the next begins\n",
	};
	static const char signalled[] = "slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2026-11-20T12:00:00 ***\n";
	static const char ended[] = "srun: error: n3: task 5: Exited with exit code 7\n";
	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct wlb_first_exit_scan scan = {0}, other = {0};
		wlb_first_exit_feed(&scan, lines[i], strlen(lines[i]));
		assert_int_equal(scan.step_signals, 0);
		wlb_first_exit_feed(&scan, ended, strlen(ended));
		assert_true(scan.first.known && scan.first.exit_code == 7);
		wlb_first_exit_feed(&other, lines[i], strlen(lines[i]));
		wlb_first_exit_feed(&other, signalled, strlen(signalled));
		assert_int_equal(other.step_signals, 1);
	}
}

static void a_fence_that_pmix_gave_up(void **state)
{
	static const char n2[] =
		"slurmstepd: error:  mpi/pmix_v4: pmixp_coll_ring_reset_if_to: n2 [0]: pmixp_coll_ring.c:741: "
		"0x7f18: collective timeout seq=1\n";
	static const char n4[] = "n4: slurmstepd: error:  mpi/pmix_v5: pmixp_coll_tree_reset_if_to: n4 [1]: "
				 "pmixp_coll_tree.c:1314: 0x55d0: collective timeout seq=0\n";
	static const char ended[] = "srun: error: n2: task 0: Exited with exit code 1\n";
	struct wlb_first_exit_scan scan = {0}, other = {0};
	char many[128];
	(void)state;
	/* It is the cause of the ends of ranks that follow it, and not of those before it. */
	for (size_t i = 0; i < 2; i++)
		wlb_first_exit_feed(&scan, n2, strlen(n2));
	wlb_first_exit_feed(&scan, ended, strlen(ended));
	wlb_first_exit_feed(&scan, n4, strlen(n4));
	assert_true(scan.fence.known && !scan.first.known && !scan.fence.has_more);
	assert_string_equal(scan.fence.nodes, "n2,n4");
	wlb_first_exit_feed(&other, ended, strlen(ended));
	wlb_first_exit_feed(&other, n4, strlen(n4));
	assert_true(!other.fence.known && other.first.known);
	/* What the other lines of the plugin say is no such end. */
	assert_false(wlb_fence_timeout_read(&other.fence, "slurmstepd: error:  mpi/pmix_v4: pmixp_coll_log: n2 [0]: "
	                                                  "pmixp_coll.c:281: Dumping collective state"));
	assert_false(wlb_fence_timeout_read(&other.fence, "mpi/pmix_v4: f: : collective timeout seq=1"));
	assert_false(wlb_fence_timeout_read(&other.fence, "a task: collective timeout seq=1"));
	for (int i = 0; i < 200; i++) {
		snprintf(many, sizeof(many), "mpi/pmix_v4: f: node%d [0]: x: collective timeout seq=1", i);
		assert_true(wlb_fence_timeout_read(&scan.fence, many));
	}
	assert_true(scan.fence.has_more && strlen(scan.fence.nodes) < sizeof(scan.fence.nodes));
}

static void a_launch_that_failed(void **state)
{
	static const char rank[] = "srun: error: task 4 launch failed: Unspecified error\n";
	static const char node[] =
		"srun: error: Task launch for StepId=12.0 failed on node n3: Communication connection failure\n";
	static const char ended[] = "srun: error: n2: task 0: Killed\n";
	static const char *const others[] = {"srun: error: task -4 launch failed: x",
	                                     "srun: error: task 4 launch failed", "task 4 launch failed: x",
	                                     "srun: error: Task launch for StepId=12.0 failed on node ",
	                                     "srun: error: Application launch failed: x"};
	struct wlb_first_exit_scan scan = {0}, other = {0};
	struct wlb_launch_failure failure = {.rank = 7};
	(void)state;
	/* It is the cause of the ends of ranks that follow it, and not of those before it. */
	wlb_first_exit_feed(&scan, rank, strlen(rank));
	wlb_first_exit_feed(&scan, node, strlen(node));
	wlb_first_exit_feed(&scan, ended, strlen(ended));
	assert_true(scan.launch.known && !scan.first.known);
	assert_int_equal(scan.launch.rank, 4);
	assert_string_equal(scan.launch.node, "");
	assert_string_equal(scan.launch.why, "Unspecified error");
	wlb_first_exit_feed(&other, ended, strlen(ended));
	wlb_first_exit_feed(&other, rank, strlen(rank));
	assert_true(!other.launch.known && other.first.known);
	assert_true(wlb_launch_failure_read(&scan.launch, node));
	assert_int_equal(scan.launch.rank, -1);
	assert_string_equal(scan.launch.node, "n3");
	assert_true(strncmp(scan.launch.why, "Communication connection failure",
	                    strlen("Communication connection failure")) == 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(wlb_launch_failure_read(&failure, others[i]));
	assert_true(!failure.known && failure.rank == 7);
}

/* srun says that it ends the step before it says why. */
static void a_launch_that_failed_in_the_order_of_srun(void **state)
{
	static const char text[] =
		"srun: launch/slurm: launch_p_step_launch: StepId=1.0 aborted before step completely launched.\n"
		"srun: Job step aborted: Waiting up to 4 seconds for job step to finish.\n"
		"srun: error: task 2 launch failed: Unspecified error\n"
		"slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-11-25T21:58:44 ***\n"
		"srun: error: n1: task 0: Killed\n";
	static const char cancelled[] =
		"slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-11-25T21:58:44 ***\n"
		"srun: Job step aborted: Waiting up to 4 seconds for job step to finish.\n"
		"srun: error: task 2 launch failed: Job credential revoked\n";
	struct wlb_first_exit_scan scan = {0}, other = {0};
	(void)state;
	wlb_first_exit_feed(&scan, text, strlen(text));
	assert_true(scan.launch.known && !scan.first.known && scan.step_signals == 0);
	assert_int_equal(scan.launch.rank, 2);
	wlb_first_exit_feed(&other, cancelled, strlen(cancelled));
	assert_true(!other.launch.known && other.step_signals == 1);
}

static struct wlb_first_exit_scan scan_all(const char *text)
{
	struct wlb_first_exit_scan scan = {0};
	wlb_first_exit_feed(&scan, text, strlen(text));
	return scan;
}

#define CANCELLED "slurmstepd-n1: error: *** STEP 1.0 ON n1 CANCELLED AT 2026-11-25T21:58:44 "

static void tasks_that_slurm_ended(void **state)
{
	static const struct {
		const char *lines, *why;
	} known[] = {
		{"srun: First task exited 3s ago\nsrun: StepId=1.0 task 1: running\nsrun: error: n2: task 1: Exited "
	         "with exit code 3\n",
	         "were left 3 s after the first had ended"},
		{"a bar 40%\rsrun: First task exited 60s ago\nsrun: error: n2: task 1: Killed\n",
	         "were left 60 s after"},
		{"srun: forcing job termination\nsrun: error: n2: task 1: Exited with exit code 3\n", "by a signal"},
		{CANCELLED "***\nsrun: error: n2: task 1: Terminated\n", "Slurm cancelled the step"},
		{"srun: Job step aborted: Waiting up to 4 seconds for job step to finish.\n" CANCELLED "***\n",
	         "cancelled the step"},
		{CANCELLED "DUE TO TIME LIMIT ***\nsrun: error: n2: task 1: Exited with exit code 3\n",
	         "cancelled the step: time limit"},
		{CANCELLED "DUE TO JOB REQUEUE ***\n", "cancelled the step: job requeue"},
		{CANCELLED "DUE to SIGNAL Killed ***\nsrun: error: n2: task 1: Killed\n",
	         "cancelled the step: signal killed"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct wlb_first_exit_scan found = scan_all(known[i].lines);
		assert_true(found.slurm_end.known && !found.first.known);
		assert_non_null(strstr(found.slurm_end.why, known[i].why));
	}
}

static void a_step_that_slurm_ended_for_the_sake_of_a_task_or_node(void **state)
{
	static const char *const others[] = {
		"srun: error: n2: task 1: Killed\n" CANCELLED "***\n",
		/* MPI_Abort: PMIx has Slurm cancel the step before the task ends. */
		CANCELLED "***\nsrun: error: n2: task 1: Exited with exit code 7\nsrun: error: n1: task 0: Killed\n",
		CANCELLED "DUE to SIGNAL Killed ***\nsrun: error: n2: task 1: Aborted\n",
		CANCELLED "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n",
		CANCELLED "DUE TO TASK FAILURE ***\n",
		"srun: error: task 2 launch failed: Unspecified error\n" CANCELLED "***\n",
		"srun: First task exited before\nFirst task exited 3s ago\n",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(scan_all(others[i]).slurm_end.known);
}

static void what_would_be_refused_again(void **state)
{
	static const struct {
		const char *line, *why, *remedy;
	} known[] = {
		{"srun: error: Unable to create step for job 12: More processors requested than permitted\n",
	         "Unable to create step for job 12: More processors requested than permitted", "--ntasks-per-node"},
		{"srun: error: Step requested GRES but job doesn't have GRES\n"
	         "srun: error: Unable to create step for job 12: Invalid generic resource (gres) specification\n",
	         "Unable to create step for job 12: Invalid generic resource (gres) specification",
	         "sbatch --gpus-per-node"},
		{"srun: unrecognized option '--frobnicate'\n", "unrecognized option '--frobnicate'", "--srun-args"},
		{"srun: invalid option -- 'y'\n", "invalid option -- 'y'", "--srun-args"},
		{"srun: option '--nodes' requires an argument\n", "option '--nodes' requires an argument",
	         "--srun-args"},
		{"srun: error: Invalid --exclusive specification\n", "Invalid --exclusive specification",
	         "--srun-args"},
		{"srun: error: Invalid MPI type 'pmix', --mpi=list for acceptable types\n", "Invalid MPI type 'pmix'",
	         "wlb doctor"},
		{"srun: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.\n",
	         "--mem, --mem-per-cpu", "--srun-args"},
		{"srun: error: wlb: tp 8 does not fit\nsrun: error: Failure in local plugin stack\n",
	         "wlb: tp 8 does not fit", "--wlb-layout"},
		{"slurmstepd: error: execve(): ./train: Permission denied\n", "execve(): ./train: Permission denied",
	         "chmod"},
		{"wlb: srun cannot be run: No such file or directory\n", "srun cannot be run: No such file", "PATH"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct wlb_first_exit_scan found = scan_all(known[i].line);
		assert_true(found.refusal.known && !found.no_step);
		assert_int_equal(strncmp(found.refusal.why, known[i].why, strlen(known[i].why)), 0);
		assert_non_null(strstr(found.refusal.remedy, known[i].remedy));
	}
}

static void bytes_that_are_no_text(void **state)
{
	struct wlb_first_exit_scan found =
		scan_all("slurmstepd: error: execve(): ./caf\xe9\x1b[31m\xc2\x9b: No such file or directory\n");
	(void)state;
	assert_string_equal(found.refusal.why, "execve(): ./caf\xef\xbf\xbd [31m : No such file or directory");
}

static void what_may_pass(void **state)
{
	static const char *const lines[] = {
		"srun: error: Unable to create step for job 12: Requested nodes are busy\n",
		"srun: error: Unable to create step for job 12: Memory required by task is not available\n",
		"srun: error: Unable to create step for job 12: Required node not available (down, drained or "
		"reserved)\n",
		"srun: error: Unable to create step for job 12: Error generating job credential\n",
		"srun: error: Unable to create step for job 12: Job/step already completing or completed\n",
		"srun: error: Unable to create step for job 12: Job credential expired\n",
		"srun: error: Unable to create step for job 12: Slurm backup controller in standby mode\n",
		"srun: error: Unable to confirm allocation for job 12: Unable to contact slurm controller (connect "
		"failure)\n",
		"srun: error: Task launch for StepId=12.0 failed on node n1: Communication connection failure\n",
		"srun: fatal: Could not establish a configuration source\n",
		"srun: error: wlb: --wlb-grow has no effect without --wlb-layout; add --wlb-layout=auto\n",
		"srun: error: Failure in local plugin stack\n",
		"trainer: srun: error: Invalid --exclusive specification\n",
		"execve(): ./train: Permission denied\n",
		"slurmstepd: error: execve(): ./train: Stale file handle\n",
	};
	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_false(scan_all(lines[i]).refusal.known);
}

static void tasks_that_cannot_execute_the_command(void **state)
{
	struct wlb_first_exit_scan found =
		scan_all("slurmstepd-n1: error: execve(): x: No such file or directory\n"
	                 "srun: error: n1: task 0: Exited with exit code 2\n"
	                 "slurmstepd-n2: error: execve(): x: No such file or directory\n"
	                 "3: slurmstepd: error: execve(): x: No such file or directory\n"
	                 "[2026-11-20T12:00:00.1] error: execve(): x: No such file or directory\n");
	(void)state;
	assert_int_equal(found.refusal.failed_tasks, 4);
}

static void processes_that_ranks_have_left(void **state)
{
	struct wlb_first_exit_scan found =
		scan_all("slurmstepd-n1: error: wlb: ended 2 processes that ranks had left on n1\n"
	                 "srun: error: n1: task 0: Killed\n"
	                 "0: slurmstepd: error: wlb: ended 1 process that ranks had left on n2\n"
	                 "slurmstepd: error: wlb: ended -1 processes that ranks had left on n3\n"
	                 "trainer: wlb: ended 5 processes that ranks had left on n3\n");
	(void)state;
	assert_int_equal(found.ended_processes, 3);
	assert_int_equal(found.ended_on_nodes, 2);
}

/* The last error of srun's own, whatever it is. */
static void the_error_of_a_step_that_was_not_made(void **state)
{
	(void)state;
	assert_string_equal(scan_all("srun: error: A\nsrun: error: B: c\nsrun: Check it\n").last_error, "B: c");
	assert_string_equal(scan_all("srun: error: n1: task 0: Killed\nsrun: error: B\n").last_error,
	                    "n1: task 0: Killed");
}

static void bytes_cut_anywhere_and_long_lines(void **state)
{
	static const char line[] = "srun: error: n3: task 5: Killed\n";
	struct wlb_first_exit_scan scan = {0};
	(void)state;
	for (int i = 0; i < 10000; i++)
		wlb_first_exit_feed(&scan, "x", 1);
	wlb_first_exit_feed(&scan, line, strlen(line)); /* the end of that line */
	assert_false(scan.first.known);
	for (size_t i = 0; i < strlen(line); i++)
		wlb_first_exit_feed(&scan, line + i, 1);
	assert_true(scan.first.known);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_lines_of_srun),
		cmocka_unit_test(every_signal),
		cmocka_unit_test(what_is_no_such_line),
		cmocka_unit_test(a_step_that_slurm_refused_for_now),
		cmocka_unit_test(the_first_one_counts),
		cmocka_unit_test(a_broken_pipe_has_a_cause),
		cmocka_unit_test(nothing_after_the_step_was_ended_by_others),
		cmocka_unit_test(slurm_has_signalled_the_step),
		cmocka_unit_test(what_a_task_logs_says_nothing_of_the_step),
		cmocka_unit_test(a_fence_that_pmix_gave_up),
		cmocka_unit_test(a_launch_that_failed),
		cmocka_unit_test(a_launch_that_failed_in_the_order_of_srun),
		cmocka_unit_test(tasks_that_slurm_ended),
		cmocka_unit_test(a_step_that_slurm_ended_for_the_sake_of_a_task_or_node),
		cmocka_unit_test(what_would_be_refused_again),
		cmocka_unit_test(bytes_that_are_no_text),
		cmocka_unit_test(what_may_pass),
		cmocka_unit_test(tasks_that_cannot_execute_the_command),
		cmocka_unit_test(processes_that_ranks_have_left),
		cmocka_unit_test(the_error_of_a_step_that_was_not_made),
		cmocka_unit_test(bytes_cut_anywhere_and_long_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
