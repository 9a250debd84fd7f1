#include "coordinator/client/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int parse_status(const char *text, struct wlb_http_head *head, struct wlb_error *error)
{
	size_t length = strcspn(text, "\r\n");
	if (strncmp(text, "HTTP/1.", 7) != 0 || length < 12 || text[8] != ' ' || text[9] < '1' || text[9] > '5' ||
	    strspn(text + 9, "0123456789") != 3)
		return wlb_fail(error, "'%.*s' is not the beginning of an HTTP reply", length > 60 ? 60 : (int)length,
		                text);
	head->status = atoi(text + 9);
	head->keep_alive = text[7] != '0';
	head->until_close = true;
	return 0;
}

static int parse_length(const char *value, size_t limit_bytes, struct wlb_http_head *head, struct wlb_error *error)
{
	char *end;
	errno = 0;
	unsigned long long length = strtoull(value, &end, 10);
	if (*value < '0' || *value > '9' || *end != '\0')
		return wlb_fail(error, "Content-Length '%.40s' is not a number", value);
	if (errno != 0 || length > limit_bytes)
		return wlb_fail(error, "the reply has %.40s bytes, at most %zu are read", value, limit_bytes);
	head->body_bytes = (size_t)length;
	head->until_close = false;
	return 0;
}

static int parse_field(const char *line, size_t length, size_t limit_bytes, struct wlb_http_head *head,
                       struct wlb_error *error)
{
	char value[WLB_HTTP_PROOF_SIZE];
	const char *colon = memchr(line, ':', length);
	if (colon == NULL)
		return wlb_fail(error, "'%.*s' is not a header line", length > 60 ? 60 : (int)length, line);
	size_t name = (size_t)(colon - line);
	const char *begin = colon + 1;
	while (begin < line + length && (*begin == ' ' || *begin == '\t'))
		begin++;
	size_t bytes = (size_t)(line + length - begin);
	while (bytes > 0 && (begin[bytes - 1] == ' ' || begin[bytes - 1] == '\t'))
		bytes--;
	if (bytes >= sizeof(value))
		return 0; /* none of the fields below is that long */
	memcpy(value, begin, bytes);
	value[bytes] = '\0';
	if (name == 14 && strncasecmp(line, "Content-Length", name) == 0)
		return parse_length(value, limit_bytes, head, error);
	if (name == 10 && strncasecmp(line, "Connection", name) == 0 && strcasecmp(value, "close") == 0)
		head->keep_alive = false;
	if (name == 9 && strncasecmp(line, "WLB-Proof", name) == 0 && strncasecmp(value, "MUNGE ", 6) == 0)
		memcpy(head->proof, value + 6, bytes - 6 + 1);
	if (name == 17 && strncasecmp(line, "Transfer-Encoding", name) == 0)
		return wlb_fail(error, "the reply is sent as '%.40s'; only plain bodies are understood", value);
	return 0;
}

int wlb_http_head_parse(const char *text, size_t limit_bytes, struct wlb_http_head *head, struct wlb_error *error)
{
	*head = (struct wlb_http_head){0};
	if (parse_status(text, head, error) != 0)
		return -1;
	for (const char *line = strstr(text, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
		line += 2;
		if (parse_field(line, strcspn(line, "\r\n"), limit_bytes, head, error) != 0)
			return -1;
	}
	if (head->status == 204 || head->status == 304)
		head->until_close = false;
	return 0;
}
