#include "coordinator/wlb/open/request_rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <nettle/memops.h>

enum { TOKEN_BYTES = WLB_TOKEN_TEXT_BYTES - 1, PORT_DIGITS_MOST = 5 };

/* Whether a host with or without a port is loopback's. The port may be another one: that of a tunnel. */
static bool is_loopback(const char *host)
{
	static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t bytes = strlen(names[i]);
		if (strncmp(host, names[i], bytes) != 0)
			continue;
		const char *port = host + bytes;
		size_t digits = *port == ':' ? strspn(port + 1, "0123456789") : 0;
		return *port == '\0' || (digits > 0 && digits <= PORT_DIGITS_MOST && port[1 + digits] == '\0');
	}
	return false;
}

/* Whether the origin is that of the host. */
static bool is_same_origin(const char *origin, const char *host)
{
	static const char scheme[] = "http://";
	return strncmp(origin, scheme, strlen(scheme)) == 0 && strcmp(origin + strlen(scheme), host) == 0;
}

static bool is_own_site(const struct wlb_page_request *request)
{
	if (request->host == NULL || !is_loopback(request->host))
		return false;
	if (request->origin != NULL && !is_same_origin(request->origin, request->host))
		return false;
	return request->fetch_site == NULL || strcmp(request->fetch_site, "same-origin") == 0 ||
	       strcmp(request->fetch_site, "none") == 0;
}

/* Returns what follows the token in the path, or NULL where that is not there. */
static const char *behind_token(const char *path, const char token[WLB_TOKEN_TEXT_BYTES])
{
	if (path == NULL || strlen(path) < 1 + TOKEN_BYTES + 1 || !memeql_sec(path + 1, token, TOKEN_BYTES) ||
	    path[0] != '/' || path[1 + TOKEN_BYTES] != '/')
		return NULL;
	return path + 1 + TOKEN_BYTES + 1;
}

enum wlb_page_answer wlb_page_answer(const struct wlb_page_request *request, const char token[WLB_TOKEN_TEXT_BYTES])
{
	const char *name = is_own_site(request) ? behind_token(request->path, token) : NULL;
	if (name == NULL)
		return WLB_ANSWER_FORBIDDEN;
	if (request->method == NULL || strcmp(request->method, "GET") != 0)
		return WLB_ANSWER_WRONG_METHOD;
	if (name[0] == '\0')
		return WLB_ANSWER_PAGE;
	return strcmp(name, "data") == 0 ? WLB_ANSWER_DATA : WLB_ANSWER_NOTHING;
}
