#include "coordinator/wlbd/jobs/drained_nodes.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/wlbd/database/db.h"
#include "coordinator/wlbd/slurm/nodes.h"
#include "coordinator/wlbd/wlbd.h"

struct wlbd_drained_nodes {
	struct wlbd *wlbd;
	char *stored; /* the list that the database has, or that is being stored; NULL: not known */
};

struct wlbd_drained_nodes *wlbd_drained_nodes_new(struct wlbd *wlbd)
{
	struct wlbd_drained_nodes *drained = calloc(1, sizeof(*drained));
	if (drained != NULL)
		drained->wlbd = wlbd;
	return drained;
}

void wlbd_drained_nodes_free(struct wlbd_drained_nodes *drained)
{
	if (drained != NULL)
		free(drained->stored);
	free(drained);
}

/* {"n3":{"reason":"fan","at":1790000000}} in the order of names, which the caller frees; NULL if out of memory. */
static char *list_text(const struct wlbd_nodes *nodes)
{
	json_t *list = json_object();
	for (int i = 0; i < wlbd_nodes_count(nodes); i++) {
		const struct wlbd_node *node = wlbd_nodes_at(nodes, i);
		if (node->drained)
			json_object_set_new(
				list, node->name,
				json_pack("{s:s, s:I}", "reason", node->reason, "at", (json_int_t)node->reason_time));
	}
	char *text = list != NULL ? json_dumps(list, JSON_COMPACT) : NULL;
	json_decref(list);
	return text;
}

static void on_stored(void *context, const struct wlbd_db_result *result)
{
	struct wlbd_drained_nodes *drained = context;
	if (result->status == WLBD_DB_OK)
		return;
	free(drained->stored);
	drained->stored = NULL;
}

void wlbd_drained_nodes_note(struct wlbd_drained_nodes *drained)
{
	struct wlbd_params params = {0};
	char *text = list_text(drained->wlbd->nodes);
	if (text == NULL || (drained->stored != NULL && strcmp(text, drained->stored) == 0)) {
		free(text);
		return;
	}
	free(drained->stored);
	drained->stored = text;
	wlbd_params_add_text(&params, text);
	wlbd_db_execute(drained->wlbd->polls, "select wlb_nodes_drained($1::jsonb)", &params, on_stored, drained);
}
