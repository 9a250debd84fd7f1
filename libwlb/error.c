/* Formats the message of an error. */
#include "libwlb/wlb.h"

#include <stdarg.h>
#include <string.h>

int wlb_fail(struct wlb_error *error, const char *format, ...)
{
	if (error == NULL)
		return -1;
	va_list args;
	va_start(args, format);
	wlb_text_vformat(error->message, sizeof(error->message), format, args);
	va_end(args);
	return -1;
}

int wlb_fail_in(struct wlb_error *error, const char *format, ...)
{
	if (error == NULL)
		return -1;
	char context[sizeof(error->message)];
	va_list args;
	va_start(args, format);
	size_t length = wlb_text_vformat(context, sizeof(context), format, args);
	va_end(args);
	if (length + 3 > sizeof(context))
		return -1;
	/* Moves the cause to the right; its end is cut off where both do not fit. */
	size_t cause = wlb_text_cut(error->message, sizeof(error->message) - length - 3);
	memmove(error->message + length + 2, error->message, cause);
	error->message[length + 2 + cause] = '\0';
	memcpy(error->message, context, length);
	memcpy(error->message + length, ": ", 2);
	return -1;
}
