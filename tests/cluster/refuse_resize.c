/*
 * Preloaded into wlbd: Slurm refuses the first changes of a job, as while slurmdbd has not answered for a job that was
 * just requeued, and the first orders to end or to requeue a job. $WLB_TEST_REFUSALS is a file of as many bytes as are
 * still refused.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

static bool is_refused(void)
{
	const char *path = getenv("WLB_TEST_REFUSALS");
	struct stat file;
	if (path == NULL || stat(path, &file) != 0 || file.st_size == 0 || truncate(path, file.st_size - 1) != 0)
		return false;
	errno = ESLURM_JOB_SETTING_DB_INX;
	return true;
}

int slurm_update_job(job_desc_msg_t *update)
{
	int (*original)(job_desc_msg_t *) = (int (*)(job_desc_msg_t *))dlsym(RTLD_NEXT, "slurm_update_job");
	return is_refused() ? SLURM_ERROR : original(update);
}

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(26, 5, 0)
typedef slurm_step_id_t requeued_job;
#else
typedef uint32_t requeued_job;
#endif

int slurm_requeue(requeued_job job, uint32_t flags)
{
	int (*original)(requeued_job, uint32_t) = (int (*)(requeued_job, uint32_t))dlsym(RTLD_NEXT, "slurm_requeue");
	return is_refused() ? SLURM_ERROR : original(job, flags);
}

int slurm_kill_job2(const char *job_id, uint16_t signal, uint16_t flags, const char *sibling)
{
	int (*original)(const char *, uint16_t, uint16_t, const char *) =
		(int (*)(const char *, uint16_t, uint16_t, const char *))dlsym(RTLD_NEXT, "slurm_kill_job2");
	return is_refused() ? SLURM_ERROR : original(job_id, signal, flags, sibling);
}
