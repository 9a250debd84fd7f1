/* Which nodes Slurm drains, kept in the database. */
#ifndef COORDINATOR_WLBD_JOBS_DRAINED_NODES_H
#define COORDINATOR_WLBD_JOBS_DRAINED_NODES_H

struct wlbd;
struct wlbd_drained_nodes;

/* Returns NULL if out of memory. */
struct wlbd_drained_nodes *wlbd_drained_nodes_new(struct wlbd *wlbd);
void wlbd_drained_nodes_free(struct wlbd_drained_nodes *drained); /* NULL is allowed */

/* Has the database told which nodes of wlbd->nodes are drained, where that is not what it was told last: by its rows it
 * knows which begin to be drained, and which are so no longer. What it could not store it is told again. */
void wlbd_drained_nodes_note(struct wlbd_drained_nodes *drained);

#endif
