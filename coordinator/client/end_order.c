#include "coordinator/client/end_order.h"

#include <string.h>

#include <jansson.h>

#include "libwlb/wlb.h"

bool wlb_reply_orders_end(const struct wlb_reply *reply, char *reason, size_t size)
{
	const char *order = NULL, *why = "the coordinator asked for it";
	json_t *root = json_loadb(reply->body, reply->length, 0, NULL);
	json_unpack(root, "{s:s, s?s}", "order", &order, "reason", &why);
	bool end = order != NULL && strcmp(order, "end") == 0;
	if (end)
		wlb_text_show(reason, size, why);
	json_decref(root);
	return end;
}

bool wlb_reply_survivors_ended(const struct wlb_reply *reply)
{
	json_t *root = json_loadb(reply->body, reply->length, 0, NULL);
	bool ended = json_is_true(json_object_get(root, "survivors_ended"));
	json_decref(root);
	return ended;
}
