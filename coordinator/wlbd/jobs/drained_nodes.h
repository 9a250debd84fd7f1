/* Which nodes Slurm drains, kept in the database. */
#ifndef COORDINATOR_WLBD_JOBS_DRAINED_NODES_H
#define COORDINATOR_WLBD_JOBS_DRAINED_NODES_H

struct wlbd;
struct wlbd_drained_nodes;

/* Returns NULL if out of memory. */
struct wlbd_drained_nodes *wlbd_drained_nodes_new(struct wlbd *wlbd);
void wlbd_drained_nodes_free(struct wlbd_drained_nodes *drained); /* NULL is allowed */

/* Stores in the database which nodes of wlbd->nodes are drained, where that differs from what was stored last: its rows
 * say which begin to be drained, and which no longer are. A list that could not be stored is stored at the next call.
 */
void wlbd_drained_nodes_note(struct wlbd_drained_nodes *drained);

#endif
