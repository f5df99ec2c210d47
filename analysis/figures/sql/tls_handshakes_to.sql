-- Of each connection to a server that began in the window and by TLS: how long its handshake took, and each side in it.
SELECT tls_end_time_us - client_hello_time_us AS handshake_us,
       server_hello_time_us - client_hello_time_us AS server_hello_us,
       client_reply_time_us - server_hello_time_us AS client_reply_us
  FROM connections JOIN tls_handshakes USING (observer, id) WHERE in_window AND to_instance = $instance;
