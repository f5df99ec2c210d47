-- A moment, told from the start of the measurement; a duration; when the server closed a connection, by FIN or RST.
CREATE MACRO moment(time_us) AS format('{:.3f} s', (time_us - $start_us) / 1000000);
CREATE MACRO took(span_us) AS
    if(span_us < 1000000, format('{:.1f} ms', span_us / 1000), format('{:.3f} s', span_us / 1000000));
CREATE MACRO server_close_us(fin_us, rst_by, rst_us) AS least(fin_us, if(rst_by = 'server', rst_us, NULL));
