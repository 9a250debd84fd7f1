#include "spank/own_step.h"

#include <stdlib.h>

#include "common/job_options.h"
#include "common/uuid.h"
#include "spank/environment.h"
#include "spank/program.h"

static const char mark[] = "SLURM_WLB_OWN_STEP", attempt[] = "SLURM_WLB_ATTEMPT_ID";

bool wlb_own_step_is_wanted(void)
{
	return getenv(wlb_job_options[WLB_JOB_LAYOUT].variable) == NULL && getenv(attempt) == NULL &&
	       getenv(attempt + sizeof("SLURM_") - 1) == NULL;
}

int wlb_own_step_begin(struct wlb_error *error)
{
	char id[WLB_UUID_LENGTH + 1];
	if (wlb_uuid_make(id, sizeof(id), error) != 0)
		return -1;
	if (setenv(attempt, id, 1) != 0 || setenv(mark, "1", 1) != 0)
		return wlb_fail(error, "no memory for the id of the attempt");
	return 0;
}

bool wlb_own_step_take(spank_t sp)
{
	char value[16];
	wlb_environment_get(sp, mark, value, sizeof(value));
	if (value[0] == '\0')
		return false;
	spank_unsetenv(sp, mark);
	spank_unsetenv(sp, mark + sizeof("SLURM_") - 1);
	if (!wlb_program_is_worker(sp))
		return true;
	spank_unsetenv(sp, attempt);
	spank_unsetenv(sp, attempt + sizeof("SLURM_") - 1);
	return false;
}
