/*
 * The states of an attempt and the transitions between them: pure logic, no I/O.
 *
 * 	RUNNING --order--> ORDERED --kill--> KILLED (and back where Slurm did not kill it)
 * 	   |                  |                |
 * 	  end                end              end
 * 	   v                  v                |
 * 	 ENDED --order--> ENDED_ORDERED <------+
 *
 * An order tells its processes to end. An order that arrives after the step ended is for processes that still report.
 *
 * Rank 0 records how its training ended while the step still runs: srun waits for the tasks of every node. What a
 * launcher reports ends the attempt where there is one.
 */
#ifndef COORDINATOR_WLBD_RULES_ATTEMPT_STATE_H
#define COORDINATOR_WLBD_RULES_ATTEMPT_STATE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	WLBD_KILL_AFTER_MS = 5000, /* processes that were ordered to end have this long until their step is killed */
	WLBD_ENDED_KEPT_MS =
		60000, /* after its end an attempt stays in memory this long: late reports get their order */
};

enum wlbd_attempt_state {
	WLBD_ATTEMPT_RUNNING,
	WLBD_ATTEMPT_ORDERED,
	WLBD_ATTEMPT_KILLED, /* Slurm was ordered to kill its step, which did not end by order */
	WLBD_ATTEMPT_ENDED,  /* its step has ended */
	WLBD_ATTEMPT_ENDED_ORDERED,
};

struct wlbd_attempt_life {
	enum wlbd_attempt_state state;
	int64_t since_ms; /* ORDERED, KILLED: of the order, or of the last kill that failed; ENDED, ENDED_ORDERED: of
	                     the end */
	int failed_kills;
	bool is_recorded; /* rank 0 has recorded the end; the step may run on */
	int exit_code;    /* that rank 0 recorded, else of the step that has ended; WLBD_EXIT_UNKNOWN: not known */
	int srun_signal;  /* that killed srun, once the step has ended; 0: none did */
};

bool wlbd_attempt_has_ended(const struct wlbd_attempt_life *life);
bool wlbd_attempt_is_ordered(const struct wlbd_attempt_life *life);

/* Whether exit_code says how it ended, though its step may still run. */
bool wlbd_attempt_end_is_known(const struct wlbd_attempt_life *life);

/* Whether the step has ended with an exit code that has a cause to be found. */
bool wlbd_attempt_has_failed(const struct wlbd_attempt_life *life);

/* Rank 0 has recorded the end, and a launcher will report that of the step. Returns false, and changes nothing, where
 * that is known already. */
bool wlbd_attempt_record_end(struct wlbd_attempt_life *life, int exit_code);

/* The transitions. Each returns false, and changes nothing, where the state has no such transition. */
bool wlbd_attempt_order(struct wlbd_attempt_life *life, int64_t now_ms);
bool wlbd_attempt_end(struct wlbd_attempt_life *life, int exit_code, int srun_signal, int64_t now_ms);
/* How a step that has ended did so, where that was not known. */
bool wlbd_attempt_explain_end(struct wlbd_attempt_life *life, int exit_code, int srun_signal);
/* Only WLBD_KILL_AFTER_MS after the order; twice as long after each kill that failed, up to 16 times. */
bool wlbd_attempt_kill(struct wlbd_attempt_life *life, int64_t now_ms);
/* Slurm did not carry the kill out. */
bool wlbd_attempt_kill_failed(struct wlbd_attempt_life *life, int64_t now_ms);

/* Whether the step ended WLBD_ENDED_KEPT_MS ago or earlier. */
bool wlbd_attempt_ended_long_ago(const struct wlbd_attempt_life *life, int64_t now_ms);

#endif
