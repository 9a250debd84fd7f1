#include "coordinator/wlbd/api/run_change.h"

#include "coordinator/wlbd/database/db_pool.h"
#include "coordinator/wlbd/wlbd.h"

/* Other users may name the same job, which is not theirs: their statements have keys of their own. */
void wlbd_run_change(struct wlbd *wlbd, uid_t uid, uint32_t job_id, const char *sql, const struct wlbd_params *params,
                     wlbd_db_done *done, void *context)
{
	uint64_t key = (uint64_t)job_id << 32 | uid;
	wlbd_db_pool_execute(wlbd->changes, uid, key, sql, params, done, context);
}
