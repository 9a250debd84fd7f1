/*
 * Preloaded into wlbd: Slurm refuses the first changes of a job, as while slurmdbd has not answered for a job that was
 * just queued again. $WLB_TEST_REFUSALS is a file of as many bytes as are still refused.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

int slurm_update_job(job_desc_msg_t *update)
{
	const char *path = getenv("WLB_TEST_REFUSALS");
	int (*original)(job_desc_msg_t *) = (int (*)(job_desc_msg_t *))dlsym(RTLD_NEXT, "slurm_update_job");
	struct stat file;
	if (path != NULL && stat(path, &file) == 0 && file.st_size > 0 && truncate(path, file.st_size - 1) == 0) {
		errno = ESLURM_JOB_SETTING_DB_INX;
		return SLURM_ERROR;
	}
	return original(update);
}
