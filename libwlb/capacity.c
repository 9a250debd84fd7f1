#include "libwlb/capacity.h"

#include <stdlib.h>
#include <string.h>

void *wlb_room_take(struct wlb_room *room, size_t count, size_t size)
{
	if (room->memory == NULL || count > room->count) {
		size_t wanted = count + count / 2 + 1;
		void *grown = reallocarray(room->memory, wanted, size);
		if (grown == NULL)
			return NULL;
		*room = (struct wlb_room){.memory = grown, .count = wanted};
	}
	return memset(room->memory, 0, count * size);
}

void wlb_room_free(struct wlb_room *room)
{
	free(room->memory);
	*room = (struct wlb_room){0};
}
