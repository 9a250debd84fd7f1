/*
 * The node page: memory that a step's agent shares with the ranks of its node.
 *
 * A rank writes the newest step that is done, and what it does in an area of its own (common/rank_trace.h); the agent
 * writes that the coordinator ordered the attempt to end. Neither waits for the other. The page is a memory file of the
 * agent, found as /proc/PID/fd/N (WLB_NODE_PAGE), so nothing of it remains, whichever process is killed. Any trainer
 * may use it; docs/trainers.md has its layout.
 */
#ifndef COORDINATOR_CLIENT_NODE_PAGE_H
#define COORDINATOR_CLIENT_NODE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/rank_trace.h"
#include "libwlb/wlb.h"

enum { WLB_NODE_PAGE_REASON_SIZE = 512 };

struct wlb_node_page;

/* Makes a page for the attempt, with an area for each of `ranks`. Other processes can open it as long as its descriptor
 * *fd is open. NULL on error. */
struct wlb_node_page *wlb_node_page_create(const char *attempt_id, int ranks, int *fd, struct wlb_error *error);

/* Opens the page at `path`; NULL if there is none or it belongs to another attempt. Ranks and agent may be of different
 * releases: areas of another form are not used. */
struct wlb_node_page *wlb_node_page_open(const char *path, const char *attempt_id, struct wlb_error *error);

void wlb_node_page_close(struct wlb_node_page *page); /* NULL allowed */

/* Sets the newest step that is done. */
void wlb_node_page_set_step(struct wlb_node_page *page, int64_t step);
int64_t wlb_node_page_step(const struct wlb_node_page *page);

/* Takes an area for a rank, which has it as long as the page is open: the area of an earlier process of the same rank,
 * empty again, or a free area. NULL where none is left. */
struct wlb_rank_trace *wlb_node_page_take_area(struct wlb_node_page *page, int rank);
/* Area i of those of the page, whether a rank has taken it or not; NULL where i is their number. */
const struct wlb_rank_trace *wlb_node_page_area(const struct wlb_node_page *page, int i);

/* Orders the attempt to end; of several reasons the first is kept. */
void wlb_node_page_order_end(struct wlb_node_page *page, const char *reason);

/* Whether the attempt must end; *reason (NULL allowed) is then valid as long as the page. */
bool wlb_node_page_must_end(const struct wlb_node_page *page, const char **reason);

#endif
