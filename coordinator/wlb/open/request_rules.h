/*
 * Which requests the page's server answers. It listens on loopback, where other users' processes and every page that is
 * open in the user's browser reach it. So a request must have the token in its path, which only who has read the
 * address knows; its Host must be loopback's, since a page of another site can have a name of its own resolve to
 * 127.0.0.1; and where the browser says which site asks, it must be this one, or the user's address line. Functions
 * without I/O.
 */
#ifndef COORDINATOR_WLB_OPEN_REQUEST_RULES_H
#define COORDINATOR_WLB_OPEN_REQUEST_RULES_H

enum { WLB_TOKEN_TEXT_BYTES = 64 + 1 }; /* 256 bits in hexadecimal */

/* What the request says; NULL: it does not. */
struct wlb_page_request {
	const char *method, *path, *host, *origin;
	const char *fetch_site; /* Sec-Fetch-Site */
};

enum wlb_page_answer {
	WLB_ANSWER_PAGE,
	WLB_ANSWER_DATA,
	WLB_ANSWER_WRONG_METHOD, /* 405 */
	WLB_ANSWER_FORBIDDEN,    /* 403: another host, another site, or no token or another one */
	WLB_ANSWER_NOTHING,      /* 404: the token is right, and there is no such path */
};

/* The page is at /TOKEN/, its data at /TOKEN/data. The token is compared in a time that does not depend on it. */
enum wlb_page_answer wlb_page_answer(const struct wlb_page_request *request, const char token[WLB_TOKEN_TEXT_BYTES]);

#endif
