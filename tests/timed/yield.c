/*
 * Replaces sched_yield, which MPI calls while a rank waits: a rank that has waited for a fifth of a millisecond sleeps
 * between two looks at its messages. Many ranks share few cores here, and those that wait would take them from ranks
 * whose operations have ended.
 */
#include <math.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A rank that called sched_yield last away_s ago did something else meanwhile, and this is another wait. A sleep adds
 * at most nap_share to a wait. */
static const double yields_s = 2e-4, away_s = 3e-3, nap_share = 0.05, least_nap_s = 1e-4, most_nap_s = 1e-3;

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int nap(double seconds)
{
	struct timespec time = {.tv_nsec = (long)(1e9 * seconds)};
	return nanosleep(&time, NULL);
}

int sched_yield(void)
{
	static _Thread_local double waits_since_s, last_s;
	double now = now_s();
	if (now - last_s > away_s)
		waits_since_s = now;
	double waited_s = now - waits_since_s;
	int rc = waited_s < yields_s ? (int)syscall(SYS_sched_yield)
	                             : nap(fmin(fmax(nap_share * waited_s, least_nap_s), most_nap_s));
	last_s = now_s();
	return rc;
}
