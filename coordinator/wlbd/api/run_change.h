/*
 * Statements by which requests change a run. Such a statement may wait for other statements of the run, such as a
 * delivery that is being stored. On the connection of wlbd's decisions it would keep the decisions of all users
 * waiting.
 */
#ifndef COORDINATOR_WLBD_API_RUN_CHANGE_H
#define COORDINATOR_WLBD_API_RUN_CHANGE_H

#include <stdint.h>
#include <sys/types.h>

#include "coordinator/wlbd/database/db.h"

struct wlbd;

/* As wlbd_db_pool_execute. `uid` is the account that asks: what it asks of one job's runs is carried out in order. */
void wlbd_run_change(struct wlbd *wlbd, uid_t uid, uint32_t job_id, const char *sql, const struct wlbd_params *params,
                     wlbd_db_done *done, void *context);

#endif
