/* The result of a search as JSON. */
#ifndef PLANNER_CLI_PLAN_JSON_H
#define PLANNER_CLI_PLAN_JSON_H

#include <jansson.h>

#include "libwlb/wlb.h"
#include "planner/cli/plan/findings.h"
#include "planner/cli/plan/input.h"

/* "all" where all pipeline stages compute the output head, else "last". */
const char *wlb_head_stages_name(const struct wlb_plan *plan);

/* Recomputation, with the layers of a chunk where not all are recomputed: "full of 2 layers a chunk".
 * WLB_RECOMPUTE_TEXT_BYTES suffice. */
void wlb_recompute_format(const struct wlb_plan *plan, char *text, size_t size);

/* An object of {"layout": {...}, ...}; returns NULL if out of memory. */
json_t *wlb_plan_to_json(const struct wlb_plan *plan);

/* An object of bytes by name; returns NULL if out of memory. */
json_t *wlb_memory_to_json(const struct wlb_memory *memory);

/* An object of the layout asked, its plan where it has a step, and the reason where it does not run; returns NULL if
 * out of memory. */
json_t *wlb_explanation_to_json(const struct wlb_explanation *why);

/* All of the result as an object, with the explanation where there is one (else NULL); returns NULL if out of memory.
 */
json_t *wlb_search_to_json(const struct wlb_plan_request *request, const struct wlb_plan_input *input,
                           const struct wlb_search_result *result, const struct wlb_plan_findings *findings);

#endif
