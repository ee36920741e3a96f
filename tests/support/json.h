/* json.h - is a text JSON? */
#ifndef FG_TESTS_JSON_H
#define FG_TESTS_JSON_H

/* NULL if the text is one JSON value and white space, else the place where it ceases to be. */
const char *json_error(const char *text);

/* Fails the test unless the text is JSON. */
void json_whole(const char *text);

#endif
