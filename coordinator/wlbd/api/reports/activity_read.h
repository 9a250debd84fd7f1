/* The activities of a report, which say what each rank of a node does. Pure: no I/O, and nothing is allocated. */
#ifndef COORDINATOR_WLBD_API_REPORTS_ACTIVITY_READ_H
#define COORDINATOR_WLBD_API_REPORTS_ACTIVITY_READ_H

#include <jansson.h>

#include "coordinator/wlbd/detection/activities.h"
#include "libwlb/wlb.h"

/* The words of the protocol, each list ended by NULL; a struct wlbd_activity has their indexes. */
extern const char *const wlbd_activity_names[];
extern const char *const wlbd_activity_process_names[]; /* in the order of enum wlbd_activity_process */
extern const char *const wlbd_call_kind_names[];

/* Sets *activities to the field 'activities' of a report, which stays the body's; it is unchanged where the field is
 * absent. Returns -1 with the member that is wrong. A rank is listed once; whether it is the node's is not checked. */
int wlbd_activities_check(const json_t *body, const json_t **activities, struct wlb_error *error);

/* Reads one entry. Returns -1 with the member that is wrong. */
int wlbd_activity_read(const json_t *entry, struct wlbd_activity *activity,
                       struct wlbd_activity_group groups[WLBD_ACTIVITY_GROUPS_MAX], struct wlb_error *error);

#endif
