/*
 * The node page: memory that a step's agent shares with the ranks of its node.
 *
 * A rank writes the step that is done, the agent writes that the coordinator orders the end, and neither waits for the
 * other. The page is a memory file of the agent's, found as /proc/PID/fd/N (WLB_NODE_PAGE): it leaves nothing behind,
 * whoever is killed when. Any trainer may use it; docs/api.md has its layout.
 */
#ifndef COORDINATOR_CLIENT_NODE_PAGE_H
#define COORDINATOR_CLIENT_NODE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libwlb/wlb.h"

enum { WLB_NODE_PAGE_REASON_SIZE = 512 };

struct wlb_node_page;

/* A new page for the attempt, and its descriptor in *fd: the page is open to others while that is. NULL on error. */
struct wlb_node_page *wlb_node_page_create(const char *attempt_id, int *fd, struct wlb_error *error);

/* The page at `path`; NULL where there is none, or when it is another attempt's. */
struct wlb_node_page *wlb_node_page_open(const char *path, const char *attempt_id, struct wlb_error *error);

void wlb_node_page_close(struct wlb_node_page *page); /* NULL allowed */

/* The step that is done. */
void wlb_node_page_set_step(struct wlb_node_page *page, int64_t step);
int64_t wlb_node_page_step(const struct wlb_node_page *page);

/* The attempt shall end; of several reasons the first stays. */
void wlb_node_page_order_end(struct wlb_node_page *page, const char *reason);

/* Whether the attempt shall end; *reason (NULL allowed) then lives as long as the page. */
bool wlb_node_page_must_end(const struct wlb_node_page *page, const char **reason);

#endif
