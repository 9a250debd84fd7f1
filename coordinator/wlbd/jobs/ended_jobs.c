#include "coordinator/wlbd/jobs/ended_jobs.h"

#include <stdlib.h>
#include <sys/queue.h>

enum { KEPT_MS = 600000 }; /* after the last question about it */

struct ended_job {
	TAILQ_ENTRY(ended_job) link;
	uint32_t job_id;
	time_t ended_at; /* a requeued job may end again */
	int64_t first_ms;
	int64_t last_ms;
};

struct wlbd_ended_jobs {
	TAILQ_HEAD(, ended_job) list; /* in the order of last_ms */
};

static void forget_old(struct wlbd_ended_jobs *jobs, int64_t now_ms)
{
	struct ended_job *oldest;
	while ((oldest = TAILQ_FIRST(&jobs->list)) != NULL && now_ms - oldest->last_ms > KEPT_MS) {
		TAILQ_REMOVE(&jobs->list, oldest, link);
		free(oldest);
	}
}

static struct ended_job *find(struct wlbd_ended_jobs *jobs, uint32_t job_id)
{
	struct ended_job *job;
	TAILQ_FOREACH(job, &jobs->list, link)
	if (job->job_id == job_id)
		return job;
	return NULL;
}

/* Returns since when the job is known to have ended then. */
static int64_t note(struct wlbd_ended_jobs *jobs, uint32_t job_id, time_t ended_at, int64_t now_ms)
{
	struct ended_job *job = find(jobs, job_id);
	if (job != NULL)
		TAILQ_REMOVE(&jobs->list, job, link);
	else
		job = calloc(1, sizeof(*job));
	if (job == NULL)
		return now_ms;
	if (job->job_id == 0 || job->ended_at != ended_at)
		*job = (struct ended_job){.job_id = job_id, .ended_at = ended_at, .first_ms = now_ms};
	job->last_ms = now_ms;
	TAILQ_INSERT_TAIL(&jobs->list, job, link);
	return job->first_ms;
}

int64_t wlbd_ended_jobs_ago_s(struct wlbd_ended_jobs *jobs, uint32_t job_id, time_t ended_at, int64_t now_ms,
                              double now_s)
{
	forget_old(jobs, now_ms);
	int64_t by_clocks_s = (int64_t)(now_s - (double)ended_at);
	int64_t known_s = (now_ms - note(jobs, job_id, ended_at, now_ms)) / 1000;
	return by_clocks_s > known_s ? by_clocks_s : known_s;
}

struct wlbd_ended_jobs *wlbd_ended_jobs_new(void)
{
	struct wlbd_ended_jobs *jobs = calloc(1, sizeof(*jobs));
	if (jobs != NULL)
		TAILQ_INIT(&jobs->list);
	return jobs;
}

void wlbd_ended_jobs_free(struct wlbd_ended_jobs *jobs)
{
	struct ended_job *job;
	while (jobs != NULL && (job = TAILQ_FIRST(&jobs->list)) != NULL) {
		TAILQ_REMOVE(&jobs->list, job, link);
		free(job);
	}
	free(jobs);
}
