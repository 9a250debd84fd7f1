#include "coordinator/wlbd/rules/attempt_state.h"

#include "coordinator/wlbd/rules/decision.h"

enum { KILL_DOUBLINGS = 4 };

bool wlbd_attempt_has_ended(const struct wlbd_attempt_life *life)
{
	return life->state == WLBD_ATTEMPT_ENDED || life->state == WLBD_ATTEMPT_ENDED_ORDERED;
}

bool wlbd_attempt_is_ordered(const struct wlbd_attempt_life *life)
{
	return life->state != WLBD_ATTEMPT_RUNNING && life->state != WLBD_ATTEMPT_ENDED;
}

bool wlbd_attempt_end_is_known(const struct wlbd_attempt_life *life)
{
	return life->is_recorded || wlbd_attempt_has_ended(life);
}

bool wlbd_attempt_has_failed(const struct wlbd_attempt_life *life)
{
	return wlbd_attempt_has_ended(life) && life->exit_code != 0 && life->exit_code != WLBD_EXIT_ORDERED &&
	       life->exit_code != WLBD_EXIT_SAVED && life->exit_code != WLBD_EXIT_UNKNOWN;
}

bool wlbd_attempt_record_end(struct wlbd_attempt_life *life, int exit_code)
{
	if (wlbd_attempt_end_is_known(life))
		return false;
	life->is_recorded = true;
	life->exit_code = exit_code;
	return true;
}

bool wlbd_attempt_order(struct wlbd_attempt_life *life, int64_t now_ms)
{
	switch (life->state) {
	case WLBD_ATTEMPT_RUNNING:
		life->state = WLBD_ATTEMPT_ORDERED;
		life->since_ms = now_ms;
		return true;
	case WLBD_ATTEMPT_ENDED:
		life->state = WLBD_ATTEMPT_ENDED_ORDERED;
		return true;
	case WLBD_ATTEMPT_ORDERED:
	case WLBD_ATTEMPT_KILLED:
	case WLBD_ATTEMPT_ENDED_ORDERED:
		return false;
	}
	return false;
}

bool wlbd_attempt_end(struct wlbd_attempt_life *life, int exit_code, int srun_signal, int64_t now_ms)
{
	if (wlbd_attempt_has_ended(life))
		return false;
	life->state = life->state == WLBD_ATTEMPT_RUNNING ? WLBD_ATTEMPT_ENDED : WLBD_ATTEMPT_ENDED_ORDERED;
	life->since_ms = now_ms;
	if (!life->is_recorded)
		life->exit_code = exit_code;
	life->srun_signal = srun_signal;
	return true;
}

bool wlbd_attempt_explain_end(struct wlbd_attempt_life *life, int exit_code, int srun_signal)
{
	if (!wlbd_attempt_has_ended(life) || life->exit_code != WLBD_EXIT_UNKNOWN || exit_code == WLBD_EXIT_UNKNOWN)
		return false;
	life->exit_code = exit_code;
	life->srun_signal = srun_signal;
	return true;
}

bool wlbd_attempt_kill(struct wlbd_attempt_life *life, int64_t now_ms)
{
	int doublings = life->failed_kills < KILL_DOUBLINGS ? life->failed_kills : KILL_DOUBLINGS;
	if (life->state != WLBD_ATTEMPT_ORDERED || now_ms - life->since_ms < (int64_t)WLBD_KILL_AFTER_MS << doublings)
		return false;
	life->state = WLBD_ATTEMPT_KILLED;
	return true;
}

bool wlbd_attempt_kill_failed(struct wlbd_attempt_life *life, int64_t now_ms)
{
	if (life->state != WLBD_ATTEMPT_KILLED)
		return false;
	life->state = WLBD_ATTEMPT_ORDERED;
	life->since_ms = now_ms;
	life->failed_kills++;
	return true;
}

bool wlbd_attempt_ended_long_ago(const struct wlbd_attempt_life *life, int64_t now_ms)
{
	return wlbd_attempt_has_ended(life) && now_ms - life->since_ms >= WLBD_ENDED_KEPT_MS;
}
