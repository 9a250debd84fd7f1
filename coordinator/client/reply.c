#include "coordinator/client/reply.h"

#include <jansson.h>

bool wlb_reply_failure(const struct wlb_reply *reply, struct wlb_error *error)
{
	const char *text = NULL;
	json_t *root = json_loadb(reply->body, reply->length, 0, NULL);
	json_unpack(root, "{s:s}", "error", &text);
	if (text != NULL)
		wlb_fail(error, "%s", text);
	else
		wlb_fail(error, "the coordinator answered with status %d", reply->status);
	bool has_message = text != NULL;
	json_decref(root);
	return has_message;
}
