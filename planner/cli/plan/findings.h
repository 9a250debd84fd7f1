/* What wlb plan finds beside the plan. */
#ifndef PLANNER_CLI_PLAN_FINDINGS_H
#define PLANNER_CLI_PLAN_FINDINGS_H

#include "planner/cli/plan/choices.h"
#include "planner/cli/plan/explain.h"
#include "planner/cli/plan/near.h"

struct wlb_plan_findings {
	struct wlb_published_near near;
	struct wlb_plan_choices choices;
	int explained;              /* 1: the user asked why a layout was not chosen */
	struct wlb_explanation why; /* that */
};

#endif
