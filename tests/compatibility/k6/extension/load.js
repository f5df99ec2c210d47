import sql from 'k6/x/sql';
export default () => sql;
